import { inspect } from 'node:util';
import type { Path } from './path.ts';

/** A value that prints as `***` wherever it is printed. Only `reveal` gives it out. */
export class Secret<T = string> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}

export const MASK = '***';

/** True when the field may hold a credential: in a `config` block by what its name suggests, elsewhere by the schema. */
export function isSecretField(path: Path): boolean {
  const names = path.filter((step) => typeof step === 'string');
  if (names[1] === 'config') return names.slice(2).some((name) => SUSPICIOUS.test(name));
  return (
    names.some(
      (name, index) => SECRET_FIELDS.has(name) || (name === 'key' && index > 0 && KEY_PARENTS.has(names[index - 1]!)),
    ) ||
    (names.includes('params') && SUSPICIOUS.test(names.at(-1)!))
  );
}

// Addresses are here because they may hold a user's password.
const SECRET_FIELDS = new Set([
  'uri',
  'snapshotUri',
  'schemaRegistry',
  'password',
  'clientSecret',
  'privateKey',
  'passphrase',
]);
const KEY_PARENTS = new Set(['tls', 'ssl']);
const SUSPICIOUS = /pass|secret|token|credential|auth|private|api-?_?key|^key$|pem$|uri|url|dsn|connection/i;

/** Text for messages; a web address with a user in it is masked in whatever field it stands. */
export function isSecretText(text: string): boolean {
  return /:\/\/[^/\s]*@/.test(text);
}

/** The name of a field that nobody knows: `password:hunter2`, without the blank after its colon, is a name too. */
export function shownKey(key: string): string {
  const end = key.search(/[^\w.-]/);
  return end < 0 ? key : `${key.slice(0, end)}${MASK}`;
}

/**
 * A deeply frozen copy in which each secret field is a `Secret`. `alsoSecret` names further fields, such as those of an
 * external driver whose value came from the environment.
 */
export function sealed<T>(value: T, alsoSecret: (path: Path) => boolean = () => false): T {
  return seal(value, []) as T;

  function seal(part: unknown, path: Path): unknown {
    if (Array.isArray(part)) return Object.freeze(part.map((item, index) => seal(item, [...path, index])));
    if (typeof part === 'object' && part !== null) {
      return Object.freeze(
        Object.fromEntries(Object.entries(part).map(([key, field]) => [key, seal(field, [...path, key])])),
      );
    }
    return part !== undefined && (isSecretField(path) || alsoSecret(path)) ? Object.freeze(new Secret(part)) : part;
  }
}

/** A plain copy with each secret given out: for a driver's config file, and for nothing that is printed. */
export function revealed(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(revealed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, revealed(field)]));
}

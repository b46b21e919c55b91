/** Replaces secrets in a text by `***`. Where the text was cut off, what may be a part of a secret goes too. */
export type Mask = (text: string, cut?: 'at its start' | 'at its end') => string;

export const NO_MASK: Mask = (text) => text;

/** Shorter values would take ordinary words out of every line, and are no secrets worth the name. */
const SECRET_CHARS_MIN = 4;

/**
 * What a driver says passes through this, for a driver that prints its configuration or a client's error is a fault
 * that must not become a leak. A secret is found as it is, percent-encoded, with the escapes of JSON and of programming
 * languages, and in base64, also inside a longer text; of a URI or connection string its password is found alone too,
 * and of a secret of several lines each line.
 */
export function maskOf(secrets: readonly string[]): Mask {
  const words = secrets
    .flatMap((secret) => [secret, ...passwordsIn(secret)])
    .flatMap((secret) => secret.split(/\r?\n|\r/))
    .filter((word) => word.length >= SECRET_CHARS_MIN && !PEM_BORDER.test(word));
  if (words.length === 0) return NO_MASK;
  // The longest first: a secret may hold another.
  const ordered = [...new Set(words)].sort((a, b) => b.length - a.length);
  const whole = anyOf(ordered.flatMap((word) => [spelled(word), ...inBase64(word).map(spelledBase64)]));
  const begun = anyOf(
    ordered.flatMap((word) => [
      spelled([...word].slice(0, SECRET_CHARS_MIN).join('')),
      ...inBase64(word).map((form) => spelledBase64(form.slice(0, SECRET_CHARS_MIN))),
    ]),
  );
  const ended = anyOf(
    ordered.flatMap((word) => [
      spelled([...word].slice(-SECRET_CHARS_MIN).join('')),
      ...inBase64(word).map((form) => spelledBase64(form.slice(-SECRET_CHARS_MIN))),
    ]),
  );
  const reach = Math.max(...ordered.map(longestSpelling));
  return (text, cut) => {
    const masked = text.replace(whole, MASK);
    switch (cut) {
      case undefined:
        return masked;
      case 'at its start': {
        const last = [...masked.slice(0, reach).matchAll(ended)].at(-1);
        return last === undefined ? masked : MASK + masked.slice(last.index + last[0].length);
      }
      case 'at its end': {
        const from = Math.max(0, masked.length - reach);
        const at = masked.slice(from).search(begun);
        return at < 0 ? masked : masked.slice(0, from + at) + MASK;
      }
    }
  };
}

const MASK = '***';

/** The first and last line of a key is no secret. */
const PEM_BORDER = /^-----(BEGIN|END) [A-Z0-9 ]+-----$/;

/** A URI or connection string is a secret because of its password, which clients print without the rest. */
function passwordsIn(secret: string): string[] {
  const [, afterColon = ''] = /^[a-z][a-z0-9+.-]*:\/\/[^:/@]*:(.*)$/is.exec(secret) ?? [];
  // Up to each @: whoever did not encode one meant it as a part of the password.
  const ofUser = [...afterColon.matchAll(/@/g)].slice(0, 10).map(({ index }) => afterColon.slice(0, index));
  const ofFurtherUsers = [...afterColon.matchAll(/:([^:@/?#,]+)@/g)].map(([, password]) => password);
  const fields = secret.matchAll(
    /(?:^|[\s?&;,])[\w-]*(?:pass|pwd|secret|token)[\w-]*\s*=\s*('[^']*'|"[^"]*"|[^\s&;]+)/gi,
  );
  const written = [
    ...ofUser,
    ...ofFurtherUsers,
    ...[...fields].map(([, value]) => value?.replace(/^(['"])(.*)\1$/s, '$2')),
  ];
  return written.filter((value) => value !== undefined).flatMap((value) => [value, decoded(value)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A percent sign that was not encoded itself.
  }
}

/** A pattern, a piece for each character or run of them. */
type Spelling = readonly string[];

function anyOf(spellings: readonly Spelling[]): RegExp {
  return new RegExp(alternatives(spellings, 0), 'g');
}

/** What they begin with in common comes once: a key has a hundred lines, and each would be tried at every place of a text. */
function alternatives(spellings: readonly Spelling[], from: number): string {
  const [first = []] = spellings;
  if (spellings.length === 1) return first.slice(from).join('');
  let at = from;
  while (at < first.length && spellings.every((spelling) => spelling[at] === first[at])) at++;
  const branches = new Map<string | undefined, Spelling[]>();
  for (const spelling of spellings) {
    const branch = branches.get(spelling[at]);
    if (branch === undefined) branches.set(spelling[at], [spelling]);
    else branch.push(spelling);
  }
  const ends = branches.delete(undefined);
  const further = [...branches.values()].map((branch) => alternatives(branch, at));
  return `${first.slice(from, at).join('')}(?:${[...further, ...(ends ? [''] : [])].join('|')})`;
}

/** Backslashes before one character: one in a text, three where that text lies in another, and so on. */
const BACKSLASHES_MAX = 7;

/**
 * A pattern of every way in which a text may stand in another. Letters and digits are never encoded. What can be read in
 * two ways, a backslash of the text or one that escapes, has one place only: else a few of them would take for ever.
 */
function spelled(text: string): Spelling {
  return [...text.matchAll(/(\\+)('+|[^\\]?)|('+)|./gsu)].map(([part, backslashes, escaped = '', quotes]) => {
    if (quotes !== undefined) return doubled(quotes, `\\\\{0,${BACKSLASHES_MAX}}`);
    if (backslashes === undefined) return spellings(part, `\\\\{0,${BACKSLASHES_MAX}}`);
    const count = backslashes.length;
    const asIs = `\\\\{${count},${(BACKSLASHES_MAX + 1) * count + BACKSLASHES_MAX}}${following(escaped, '')}`;
    const encoded = encodings('\\', `\\\\{1,${BACKSLASHES_MAX}}`).map((form) => `(?:${form}){${count}}`);
    return `(?:${asIs}|(?:${encoded.join('|')})${following(escaped, `\\\\{0,${BACKSLASHES_MAX}}`)})`;
  });
}

/** What comes after backslashes: nothing, a character, or quotes. */
function following(escaped: string, backslashes: string): string {
  if (escaped === '') return '';
  return escaped.startsWith("'") ? doubled(escaped, backslashes) : spellings(escaped, backslashes);
}

const PLAIN = /^[A-Za-z0-9]$/;

/** Of one character, with the given pattern of backslashes before it. */
function spellings(character: string, backslashes: string): string {
  if (PLAIN.test(character)) return character;
  const literal = character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  const more = character === ' ' ? ['\\+'] : character === '\t' ? [`${backslashes}t`] : [];
  return `(?:${[`${backslashes}${literal}`, ...encodings(character, backslashes), ...more].join('|')})`;
}

/** SQL writes each quote of a run twice. The given pattern of backslashes stands before the first. */
function doubled(quotes: string, backslashes: string): string {
  const more = quotes.length - 1;
  const literal = `${backslashes}'(?:\\\\{0,${BACKSLASHES_MAX}}'){${more},${2 * more + 1}}`;
  const further = encodings("'", `\\\\{1,${BACKSLASHES_MAX}}`);
  const first = backslashes === '' ? encodings("'", '') : further;
  const encoded = first.map((form, index) => `(?:${form})(?:${further[index]}){${more}}`);
  return `(?:${[literal, ...encoded].join('|')})`;
}

function encodings(character: string, backslashes: string): string[] {
  const bytes = [...Buffer.from(character)].map((byte) => anyCase(byte.toString(16).padStart(2, '0')));
  const units = [...Array(character.length)].map((_, index) =>
    anyCase(character.charCodeAt(index).toString(16).padStart(4, '0')),
  );
  const further = `\\\\{1,${BACKSLASHES_MAX}}`;
  return [
    bytes.map((byte) => `%(?:25)?${byte}`).join(''),
    `${backslashes}x${bytes.join(`${further}x`)}`,
    `${backslashes}u${units.join(`${further}u`)}`,
  ];
}

function anyCase(hex: string): string {
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

/** What a text gives in base64 depends on where in its group of three bytes it begins: three forms. */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2]
    .map((before) => {
      const whole = Buffer.concat([Buffer.alloc(before), bytes]);
      // Without the characters that hold bits of a neighbour.
      return whole.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((whole.length * 8) / 6));
    })
    .filter((form) => form.length >= SECRET_CHARS_MIN);
}

function spelledBase64(form: string): Spelling {
  return [...form].map((character) => BASE64_SPELLINGS[character] ?? character);
}

const BASE64_SPELLINGS: Readonly<Record<string, string>> = {
  '+': '(?:\\+|-|%2[bB])',
  '/': '(?:\\\\?\\/|_|%2[fF])',
};

/** Characters that its longest spelling may have. */
function longestSpelling(text: string): number {
  return (
    [...text].reduce(
      (sum, character) => sum + (PLAIN.test(character) ? 1 : 6 * Buffer.byteLength(character) + BACKSLASHES_MAX),
      0,
    ) * 2
  );
}

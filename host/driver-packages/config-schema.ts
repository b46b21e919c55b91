import { UrutauError } from '@urutau/contract';
import { Ajv, type ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { closest } from '../spec/did-you-mean.ts';
import { shownKey } from '../spec/secrets.ts';
import type { DriverPackage, JsonSchema } from './manifest.ts';

export interface ConfigProblem {
  /** As in `postgres.ssl.mode` or `tables[0].name`; empty for the config as a whole. */
  readonly path: string;
  /** A sentence without a subject, such as `must be a number, but a text came`. Never shows a secret. */
  readonly problem: string;
}

/** Checks a config against the driver's config.schema.json: every failure at once. Without a schema anything passes. */
export function checkConfig(driver: DriverPackage, config: unknown): readonly ConfigProblem[] {
  const { configSchema, directory } = driver;
  if (configSchema === undefined) return [];
  const validate = compile(configSchema, directory);
  if (validate(config)) return [];
  const secretPaths = new Set(secretValues(configSchema, config).map(({ path }) => path));
  const problems = (validate.errors ?? [])
    .filter(({ keyword }) => keyword !== 'if')
    .map((error) => describe(error, isSecret(error.instancePath, secretPaths)));
  return unique(problems);
}

/** As `checkConfig`, but throws `config-invalid` with all failures. */
export function requireConfig(driver: DriverPackage, config: unknown): void {
  const problems = checkConfig(driver, config);
  if (problems.length === 0) return;
  const lines = problems.map(({ path, problem }) => `  ${path === '' ? 'config' : path}: ${problem}`);
  throw new UrutauError(
    'config-invalid',
    `the config of the driver ${driver.manifest.name} has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${lines.join('\n')}`,
  );
}

/** The values in `config` that the schema marks `"secret": true`, as text; what lies below a marked object is secret too. */
export function secretsOf(schema: JsonSchema | undefined, config: unknown): readonly string[] {
  return schema === undefined ? [] : secretValues(schema, config).flatMap(({ value }) => textsIn(value));
}

type Validate = ReturnType<Ajv['compile']>;

function compile(schema: JsonSchema, directory: string): Validate {
  const options = { allErrors: true, strict: false, verbose: true } as const;
  const isOld = /draft-0[4-7]/.test(String(schema['$schema'] ?? ''));
  const ajv = isOld ? new Ajv(options) : new Ajv2020(options);
  (formats as unknown as (ajv: Ajv | Ajv2020) => void)(ajv);
  ajv.addKeyword('secret');
  try {
    return ajv.compile(schema);
  } catch (cause) {
    throw new UrutauError(
      'config-invalid',
      `${directory}/config.schema.json is not a usable JSON Schema: ${(cause as Error).message}`,
      {
        cause,
        remedy: "Correct the driver's config.schema.json.",
      },
    );
  }
}

function describe(
  { instancePath, keyword, params, message, data, parentSchema }: ErrorObject,
  secret: boolean,
): ConfigProblem {
  const path = readable(instancePath);
  const inside = (key: string) => (path === '' ? key : `${path}.${key}`);
  switch (keyword) {
    case 'required':
      return { path: inside(params['missingProperty']), problem: 'is required, but is missing' };
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const key: string = params['additionalProperty'] ?? params['unevaluatedProperty'];
      const meant = closest(key, Object.keys((parentSchema?.['properties'] as object | undefined) ?? {}));
      return {
        path: inside(shownKey(key)),
        problem: `is not known${meant === undefined ? '' : `; did you mean ${meant}?`}`,
      };
    }
    case 'type':
      return { path, problem: `must be ${kinds(params['type'])}, but ${kindOf(data)} came` };
    case 'enum':
    case 'const': {
      const allowed: unknown[] = keyword === 'enum' ? params['allowedValues'] : [params['allowedValue']];
      const meant =
        !secret && typeof data === 'string'
          ? closest(
              data,
              allowed.filter((value) => typeof value === 'string'),
            )
          : undefined;
      return {
        path,
        problem: `must be ${allowed.map((value) => JSON.stringify(value)).join(' or ')}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
      };
    }
    default: {
      // Only numbers are shown: a text may be a password in the wrong field.
      const came = typeof data === 'number' && !secret ? `, but ${data} came` : '';
      return { path, problem: `${message ?? `breaks the rule ${keyword}`}${came}` };
    }
  }
}

/** `/postgres/ssl` → `postgres.ssl`, `/tables/0` → `tables[0]`. */
function readable(pointer: string): string {
  return partsOf(pointer)
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : `${index === 0 ? '' : '.'}${part}`))
    .join('');
}

function partsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function kinds(type: string | string[]): string {
  return [type]
    .flat()
    .map((name) => KINDS[name] ?? name)
    .join(' or ');
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'a block of fields',
  array: 'a list',
  null: 'null',
};

function kindOf(data: unknown): string {
  if (data === null) return 'null';
  if (Array.isArray(data)) return 'a list';
  return KINDS[typeof data] ?? typeof data;
}

function isSecret(instancePath: string, secretPaths: ReadonlySet<string>): boolean {
  return [...secretPaths].some((path) => instancePath === path || instancePath.startsWith(`${path}/`));
}

function unique(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return [...new Map(problems.map((problem) => [`${problem.path}\n${problem.problem}`, problem])).values()];
}

interface SecretValue {
  /** JSON pointer. */
  readonly path: string;
  readonly value: unknown;
}

/** Walks schema and config together. Every branch of an alternative is walked: what may be secret is secret. */
function secretValues(root: JsonSchema, config: unknown): SecretValue[] {
  const found: SecretValue[] = [];
  const walked = new Map<unknown, Set<string>>();

  function walk(schema: unknown, value: unknown, path: string): void {
    if (typeof schema !== 'object' || schema === null || value === undefined) return;
    const paths = walked.get(schema) ?? new Set();
    if (paths.has(path)) return; // A schema may refer to itself.
    walked.set(schema, paths.add(path));

    const { secret, $ref, properties, patternProperties, additionalProperties, items, prefixItems, ...rest } =
      schema as Record<string, unknown>;
    if (secret === true) found.push({ path, value });
    if (typeof $ref === 'string') walk(resolved(root, $ref), value, path);
    for (const combined of ['allOf', 'anyOf', 'oneOf'])
      for (const branch of list(rest[combined])) walk(branch, value, path);
    for (const branch of ['if', 'then', 'else', 'not']) walk(rest[branch], value, path);
    for (const branch of Object.values(record(rest['dependentSchemas']))) walk(branch, value, path);
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        walk(list(prefixItems)[index], item, `${path}/${index}`);
        walk(Array.isArray(items) ? items[index] : items, item, `${path}/${index}`);
      }
      return;
    }
    for (const [key, member] of Object.entries(record(value))) {
      const at = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      if (Object.hasOwn(record(properties), key)) walk(record(properties)[key], member, at);
      for (const [pattern, branch] of Object.entries(record(patternProperties))) {
        if (new RegExp(pattern, 'u').test(key)) walk(branch, member, at);
      }
      walk(additionalProperties, member, at);
    }
  }

  walk(root, config, '');
  return found;
}

function resolved(root: JsonSchema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  return partsOf(decodeURIComponent(reference.slice(1))).reduce<unknown>((schema, part) => record(schema)[part], root);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** What of a secret can be known again in a text: neither `true` nor `null` is one. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number' || typeof value === 'bigint') return [String(value)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

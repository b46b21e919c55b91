import type { JsonSchema } from '../driver-packages/manifest.ts';

export interface ConfigField {
  /** `uri`, `ssl.mode`; an item of a list is `[]`, a member of a map `*`. */
  readonly path: string;
  readonly type: string;
  readonly required: boolean;
  readonly secret: boolean;
  readonly default?: unknown;
  readonly description?: string;
}

/** The fields of a config.schema.json, the fields of a block after it. */
export function configFields(schema: JsonSchema | undefined): ConfigField[] {
  return schema === undefined ? [] : fieldsBelow(schema, '', schema, []);
}

function fieldsBelow(schema: JsonSchema, prefix: string, root: JsonSchema, via: readonly JsonSchema[]): ConfigField[] {
  if (via.includes(schema)) return []; // A schema may refer to itself.
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const below = (path: string, member: JsonSchema, isRequired: boolean): ConfigField[] => {
    const resolved = dereferenced(member, root);
    return [field(path, resolved, isRequired), ...fieldsBelow(resolved, `${path}.`, root, [...via, schema])];
  };
  const named = Object.entries(record(schema['properties'])).flatMap(([name, member]) =>
    below(`${prefix}${name}`, record(member), required.includes(name)),
  );
  const items = Object.keys(record(schema['items'])).length > 0 && prefix !== '';
  const members = Object.keys(record(schema['additionalProperties'])).length > 0;
  return [
    ...named,
    ...(items
      ? fieldsBelow(dereferenced(record(schema['items']), root), `${prefix.slice(0, -1)}[].`, root, [...via, schema])
      : []),
    ...(members ? below(`${prefix}*`, record(schema['additionalProperties']), false) : []),
  ];
}

function field(path: string, schema: JsonSchema, required: boolean): ConfigField {
  const { description, default: fallback, secret } = schema;
  return {
    path,
    type: typeText(schema),
    required,
    secret: secret === true,
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(typeof description === 'string' ? { description } : {}),
  };
}

function typeText(schema: JsonSchema): string {
  const { type, enum: values, const: only, oneOf, anyOf } = schema;
  if (Array.isArray(values)) return values.map(String).join(' | ');
  if (only !== undefined) return String(only);
  if (type !== undefined) return [type].flat().map(String).join(' | ');
  const branches = [oneOf, anyOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return branches.length === 0 ? 'any' : [...new Set(branches.map((branch) => typeText(record(branch))))].join(' | ');
}

function dereferenced(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const reference = schema['$ref'];
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return schema;
  return reference
    .slice(2)
    .split('/')
    .reduce<JsonSchema>((at, part) => record(at[part]), root);
}

function record(value: unknown): JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};
}

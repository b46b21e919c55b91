// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { pipelineJsonSchema } from '../../../../host/spec/json-schema.ts';

const FILE = fileURLToPath(new URL('../../../../contract/schemas/pipeline.schema.json', import.meta.url));
const PIPELINE = {
  pipeline: 'p',
  source: { kind: 'postgres', slotName: 's', postgres: { host: 'h', port: 5432 } },
  sink: { type: 'stdout' },
  tables: [{ source: 'public.a', target: 'a' }],
};

test('the schema for editors is that of the host; when this fails run node scripts/generate-pipeline-schema.mjs', () => {
  expect(JSON.parse(readFileSync(FILE, 'utf8'))).toEqual(pipelineJsonSchema());
});

test('an editor takes a reference in place of a number', () => {
  expect(accepts({ ...PIPELINE, window: '${env:WINDOW}' })).toBe(true);
  expect(accepts(withPort('${env:PORT}'))).toBe(true);
});

test('an editor refuses an unknown field, a wrong type and a number out of its range', () => {
  expect(accepts({ ...PIPELINE, supervison: {} })).toBe(false);
  expect(accepts({ ...PIPELINE, tables: [{ source: 'public.a', target: 7 }] })).toBe(false);
  expect(accepts(withPort(70_000))).toBe(false);
});

test('every field is described', () => {
  expect(undescribed(pipelineJsonSchema(), '')).toEqual([]);
});

function withPort(port: unknown) {
  return { ...PIPELINE, source: { ...PIPELINE.source, postgres: { host: 'h', port } } };
}

function accepts(value: unknown): boolean {
  return new Ajv2020({ strict: false }).compile(pipelineJsonSchema())(value);
}

function undescribed(schema: unknown, at: string): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, items, $defs = {} } = schema as Record<string, Record<string, object> | undefined>;
  const fields = Object.entries({ ...properties, ...$defs });
  const bare = fields
    .filter(([, field]) => !('description' in field) && !('$ref' in field))
    .map(([name]) => `${at}.${name}`);
  return [
    ...bare,
    ...fields.flatMap(([name, field]) => undescribed(field, `${at}.${name}`)),
    ...undescribed(items, `${at}[]`),
  ];
}

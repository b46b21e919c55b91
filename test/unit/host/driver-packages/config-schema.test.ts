import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkConfig, requireConfig, secretsOf } from '../../../../host/driver-packages/config-schema.ts';
import type { JsonSchema } from '../../../../host/driver-packages/manifest.ts';

const SCHEMA: JsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  required: ['host'],
  additionalProperties: false,
  properties: {
    host: { type: 'string' },
    port: { type: 'integer', minimum: 1, maximum: 65_535 },
    mode: { enum: ['disable', 'require'] },
    password: { $ref: '#/$defs/secretText' },
    tls: { type: 'object', secret: true, properties: { key: { type: 'string' } } },
    brokers: {
      type: 'array',
      items: { type: 'object', properties: { token: { type: 'string', secret: true, minLength: 8 } } },
    },
  },
  $defs: { secretText: { type: 'string', secret: true, pattern: '^[a-z]+$', maxLength: 10 } },
};

function driver(configSchema?: JsonSchema) {
  return {
    directory: '/drivers/shop',
    manifest: {
      name: 'shop',
      version: '1.0.0',
      roles: ['source' as const],
      command: ['x'],
      protocolVersions: [1],
      capabilities: { idempotentWrite: true },
      env: [],
    },
    configSchema,
  };
}

test('every failure is told at once, with its path and what came', () => {
  const config = { prot: 1, port: 70_000, mode: 'disabel', password: 12, brokers: [{ token: 'short' }] };

  expect(checkConfig(driver(SCHEMA), config)).toEqual(
    expect.arrayContaining([
      { path: 'host', problem: 'is required, but is missing' },
      { path: 'prot', problem: 'is not known; did you mean port?' },
      { path: 'port', problem: 'must be <= 65535, but 70000 came' },
      { path: 'mode', problem: 'must be "disable" or "require"; did you mean disable?' },
      { path: 'password', problem: 'must be a text, but a number came' },
      { path: 'brokers[0].token', problem: 'must NOT have fewer than 8 characters' },
    ]),
  );
});

test('a config that fits, and any config of a driver without a schema, has no failures', () => {
  expect(checkConfig(driver(SCHEMA), { host: 'db' })).toEqual([]);
  expect(checkConfig(driver(), 'anything')).toEqual([]);
});

test('a schema of the older drafts is understood', () => {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    properties: { uri: { type: 'string', format: 'uri' } },
  };

  expect(checkConfig(driver(schema), { uri: 'no uri' })).toEqual([{ path: 'uri', problem: 'must match format "uri"' }]);
});

test('requireConfig puts all failures into one error', () => {
  expect(() => requireConfig(driver(SCHEMA), { port: 'x' })).toThrow(
    'the config of the driver shop has 2 problems:\n  host: is required, but is missing\n  port: must be a whole number, but a text came',
  );
});

test("a schema that cannot be used is the driver's fault, and says so", () => {
  expect(() => checkConfig(driver({ type: 'nonsense' }), {})).toThrow(
    '/drivers/shop/config.schema.json is not a usable JSON Schema',
  );
});

test('secrets are found behind references, in lists, and below a marked block', () => {
  const config = {
    host: 'db',
    password: 'one',
    tls: { key: 'two', more: ['three'] },
    brokers: [{ token: 'four' }, { token: 'five' }],
  };

  expect([...secretsOf(SCHEMA, config)].sort()).toEqual(['five', 'four', 'one', 'three', 'two']);
});

test('a schema that refers to itself ends', () => {
  const schema = { $ref: '#', properties: { next: { $ref: '#' }, key: { secret: true } } };

  expect(secretsOf(schema, { next: { next: { key: 'deep' } } })).toEqual(['deep']);
});

test('no text of a config is ever shown, whatever is wrong with it', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[A-Z0-9]{12,20}$/), (secret) => {
      const config = {
        host: { a: secret },
        port: secret,
        mode: secret,
        password: secret,
        tls: secret,
        brokers: [secret],
      };

      expect(JSON.stringify(checkConfig(driver(SCHEMA), config))).not.toContain(secret);
    }),
    { numRuns: 25 }, // Each compiles the schema.
  );
});

test('a secret that stands in the name of a field, for want of a blank, is not shown', () => {
  expect(checkConfig(driver(SCHEMA), { host: 'h', 'password:hunter2': null })).toEqual([
    { path: 'password***', problem: expect.stringContaining('is not known') },
  ]);
});

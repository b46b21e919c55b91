import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { settingsOf, sourceConfig } from '../../../../../drivers/postgres/source/config.ts';

const block = { host: 'h', database: 'd', username: 'u' };

test('what is left out has its default, also beside a uri', () => {
  const defaults = {
    slotName: 'shop',
    publicationName: 'shop_pub',
    publicationManaged: true,
    maxThreads: 4,
    retryCount: 3,
    heartbeatMs: 10_000,
  };

  expect(settingsOf(sourceConfig.parse({ uri: 'postgresql://h/d', slotName: 'shop' }))).toEqual(defaults);
  expect(settingsOf(sourceConfig.parse({ postgres: block, slotName: 'shop' }))).toEqual(defaults);
});

test('every setting of the block is taken', () => {
  const publication = { name: 'theirs', create: 'existing' };
  const config = { slotName: 's', postgres: { ...block, maxThreads: 2, retryCount: 0, heartbeat: '2m', publication } };

  expect(settingsOf(sourceConfig.parse(config))).toEqual({
    slotName: 's',
    publicationName: 'theirs',
    publicationManaged: false,
    maxThreads: 2,
    retryCount: 0,
    heartbeatMs: 120_000,
  });
});

test('what is particular to Postgres may stand beside a uri', () => {
  const config = { slotName: 's', uri: 'postgresql://h/d', postgres: { maxThreads: 2 } };

  expect(settingsOf(sourceConfig.parse(config)).maxThreads).toBe(2);
});

test.each([
  [{ slotName: 's' }],
  [{ slotName: 's', postgres: { host: 'h' } }],
  [{ slotName: 's', uri: 'postgresql://h/d', postgres: block }],
  [{ slotName: 'Sh-op', uri: 'postgresql://h/d' }],
  [{ slotName: 's', uri: 'http://h/d' }],
  [{ slotName: 's', postgres: { ...block, maxThreads: 33 } }],
  [{ slotName: 's', postgres: { ...block, ssh: {} } }],
  [{ slotName: 's', postgres: { ...block, heartbeat: '0s' } }],
  [{ slotName: 's', postgres: { ...block, cdc: { plugin: 'wal2json' } } }],
])('%j is refused', (config) => {
  expect(() => sourceConfig.parse(config)).toThrow();
});

test('config.schema.json has the same fields, and marks the secret ones', () => {
  const folder = new URL('../../../../../drivers/postgres/source/', import.meta.url);
  const schema = JSON.parse(readFileSync(new URL('config.schema.json', folder), 'utf8'));
  const zod = sourceConfig.shape;

  expect(Object.keys(schema.properties).sort()).toEqual(Object.keys(zod).sort());
  expect(Object.keys(schema.properties.postgres.properties).sort()).toEqual(
    Object.keys(zod.postgres.unwrap().shape).sort(),
  );
  expect(secrets(schema)).toEqual(['uri', 'password', 'key']);
});

interface SchemaNode {
  secret?: boolean;
  properties?: Record<string, SchemaNode>;
}

function secrets({ properties = {} }: SchemaNode): string[] {
  return Object.entries(properties).flatMap(([name, field]) => [...(field.secret ? [name] : []), ...secrets(field)]);
}

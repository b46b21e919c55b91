import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { clientConfig, sinkConfig, targetName } from '../../../../../drivers/postgres/sink/config.ts';

const URI = 'postgresql://writer:secret@db.example:6543/shop';

test.each([
  ['orders', {}, 'public', 'orders'],
  ['orders', { namespace: 'bronze' }, 'bronze', 'orders'],
  ['sales.orders', { namespace: 'bronze' }, 'sales', 'orders'],
  ['sales.orders', { tablePrefix: 'raw_' }, 'sales', 'raw_orders'],
  ['sales.orders.2024', {}, 'sales', 'orders.2024'],
])('target %s with %j is schema %s, table %s', (name, settings, schema, table) => {
  expect(targetName(name, sinkConfig.parse({ uri: URI, ...settings }))).toEqual({
    schema,
    table,
    full: `${schema}.${table}`,
  });
});

test('the schema for the host lists the very fields that the driver takes', () => {
  const path = new URL('../../../../../drivers/postgres/sink/config.schema.json', import.meta.url);
  const { properties, required } = JSON.parse(readFileSync(path, 'utf8'));

  expect(Object.keys(properties)).toEqual(Object.keys(sinkConfig.shape));
  expect(Object.keys(properties.tls.properties)).toEqual(Object.keys(sinkConfig.shape.tls.unwrap().shape));
  expect(required).toEqual(['uri']);
  expect([properties.uri.secret, properties.tls.properties.key.secret]).toEqual([true, true]);
});

test('the tls block stands for the parameters of the uri', () => {
  const { ssl, host, port, user } = clientConfig(sinkConfig.parse({ uri: URI, tls: { mode: 'require' } }));

  expect({ host, port, user }).toEqual({ host: 'db.example', port: 6543, user: 'writer' });
  expect(ssl).toMatchObject({ rejectUnauthorized: false });
});

test('an unknown field and an uri of another kind are refused', () => {
  expect(() => sinkConfig.parse({ uri: URI, schema: 'x' })).toThrow(/schema/);
  expect(() => sinkConfig.parse({ uri: 'mysql://x' })).toThrow(/postgresql/);
});

import { UrutauError } from '@urutau/sdk';
import pg from 'pg';
import { expect, test } from 'vitest';
import {
  asPgError,
  isServerClosing,
  pgConfig,
  quoteName,
  readableName,
  splitName,
} from '../../../../drivers/postgres/connection.ts';

test('a uri gives its parts, decoded, with the settings that the text form of values needs', () => {
  const config = pgConfig({
    uri: 'postgresql://us%40er:p%2Fw@db.example:6432/shop?application_name=mine&search_path=a%20b',
  });

  expect(config).toMatchObject({
    host: 'db.example',
    port: 6432,
    database: 'shop',
    user: 'us@er',
    password: 'p/w',
    ssl: false,
    application_name: 'mine',
    client_encoding: 'UTF8',
  });
  expect(config.options).toContain('-c search_path=a\\ b');
  expect(config.options).toContain('-c DateStyle=ISO,\\ YMD');
  // The text of money is another one in each locale.
  expect(config.options).toContain('-c lc_monetary=C');
  expect(config.options).toContain('-c TimeZone=UTC');
});

test('a user’s parameter cannot change a setting on which values rely', () => {
  const { options } = pgConfig({
    postgres: { host: 'h', database: 'd', username: 'u', params: { TimeZone: 'Asia/Tokyo' } },
  });

  expect(options).toContain('-c TimeZone=UTC');
  expect(options).not.toContain('Tokyo');
});

test('sslmode has the meaning that it has for every other client of the server', () => {
  const ssl = (mode: string) => pgConfig({ uri: `postgresql://h/d?sslmode=${mode}` }).ssl;

  expect(ssl('disable')).toBe(false);
  expect(ssl('require')).toMatchObject({ rejectUnauthorized: false });
  expect(ssl('verify-ca')).toMatchObject({ rejectUnauthorized: true, checkServerIdentity: expect.any(Function) });
  expect(ssl('verify-full')).not.toHaveProperty('checkServerIdentity');
});

test.each([
  ['both a uri and a block', { uri: 'postgresql://h/d', postgres: { host: 'h', database: 'd', username: 'u' } }],
  ['neither', {}],
  ['an sslmode that may fall back to plain text', { uri: 'postgresql://h/d?sslmode=prefer' }],
  ['another scheme', { uri: 'mysql://u:secret@h/d' }],
  ['a uri that is none', { uri: 'postgresql://u:secret@[h/d' }],
])('%s is refused without a word of the uri', (_, options) => {
  expect(() => pgConfig(options)).toThrow(
    expect.objectContaining({ code: 'config-invalid', message: expect.not.stringContaining('secret') }),
  );
});

test.each([
  ['28P01', 'source', 'auth-failed'],
  ['42501', 'source', 'precondition-failed'],
  ['3D000', 'sink', 'precondition-failed'],
  ['42P01', 'sink', 'table-not-found'],
  ['57P01', 'source', 'source-unavailable'],
  ['53300', 'sink', 'sink-unavailable'],
  ['40P01', 'sink', 'sink-unavailable'],
  ['23505', 'sink', 'row-refused'],
  ['42703', 'sink', 'schema-unsupported'],
  ['XX000', 'source', 'internal'],
] as const)('SQLSTATE %s at the %s is %s', (code, side, expected) => {
  expect(asPgError(serverError(code, 'why'), side)).toMatchObject({
    code: expected,
    message: expect.stringContaining(code),
  });
});

test('a server’s message that quotes a value is replaced by the names of column and table', () => {
  const error = Object.assign(serverError('22P02', 'invalid input syntax for type integer: "4111 1111"'), {
    table: 't',
    column: 'c',
  });

  expect(asPgError(error, 'sink').message).toBe(
    'postgres sink: the server refused a value: table t, column c (SQLSTATE 22P02)',
  );
});

test('a refused connection is unavailable, a fault of the program is internal, and a typed error stays as it is', () => {
  const typed = new UrutauError('plan-lost', 'x');

  expect(asPgError(Object.assign(new Error(''), { code: 'ECONNREFUSED' }), 'source')).toMatchObject({
    code: 'source-unavailable',
    message: 'postgres source: the connection failed (ECONNREFUSED)',
  });
  expect(asPgError(new TypeError('x is not a function'), 'source').code).toBe('internal');
  expect(asPgError(typed, 'sink')).toBe(typed);
});

test('names are quoted so that they mean exactly themselves, and a schema ends at the first dot', () => {
  expect(quoteName('Sales."odd".table')).toBe('"Sales"."""odd"".table"');
  expect(splitName('orders')).toEqual({ schema: 'public', name: 'orders' });
});

test('a name in a statement for a person has quotes only where it needs them', () => {
  expect(readableName('public.orders')).toBe('public.orders');
  expect(readableName('public.Order.Lines')).toBe('public."Order.Lines"');
});

test('a server that lets nobody in is told from one that ends a connection, also inside a wrapped error', () => {
  const closing = serverError('57P03', 'the database system is shutting down');

  expect(isServerClosing(closing)).toBe(true);
  expect(isServerClosing(asPgError(closing, 'source'))).toBe(true);
  expect(isServerClosing(asPgError(serverError('57P01', 'terminating connection'), 'source'))).toBe(false);
});

function serverError(code: string, message: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError(message, 0, 'error'), { code });
}

test.each(['u:p/zq7@h/d', 'u:12/zq7@h/d', 'u:12#zq7@h/d', 'u:12?zq7@h/d', 'u:p@ss/zq7@h/d', 'h/d#zq7'])(
  'a uri whose password ends its address early is refused before a piece of it becomes the host: %s',
  (rest) => {
    const refused = () => pgConfig({ uri: `postgres://${rest}` });

    expect(refused).toThrow(
      expect.objectContaining({ code: 'config-invalid', remedy: expect.stringContaining('%40') }),
    );
    expect(refused).not.toThrow('zq7');
  },
);

test('an @ that is encoded, or behind the question mark, is none of an address', () => {
  expect(pgConfig({ uri: 'postgres://u:p%40%2F@h/d?application_name=me@corp' })).toMatchObject({
    host: 'h',
    password: 'p@/',
    application_name: 'me@corp',
  });
});

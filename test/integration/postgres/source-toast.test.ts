import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { type Change, openChanges, startSource } from './source-harness.ts';

/** Long, and hard to compress: it goes out of line. */
const LONG = "(SELECT string_agg(md5(i::text || $1), '') FROM generate_series(1, 400) i)";

async function tableWithLongText(prefix: string, more = '') {
  const database = await freshDatabase(inject('postgres18'), prefix);
  const { client, uri, name } = database;
  await client.query(`CREATE TABLE t (id int PRIMARY KEY, v int, long text, other text) ${more}`);
  await client.query('ALTER TABLE t ALTER COLUMN long SET STORAGE EXTERNAL, ALTER COLUMN other SET STORAGE EXTERNAL');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  await client.query(`INSERT INTO t VALUES (1, 0, ${LONG}, NULL)`, ['a']);
  const { rows } = await client.query('SELECT long FROM t');
  return { ...database, source, long: rows[0].long as string };
}

const values = (changes: readonly Change[]) => changes.map(({ op, before, after }) => ({ op, before, after }));

test('an update that leaves a long value alone brings it all the same, and NULL stays NULL', async () => {
  const { client, source, long } = await tableWithLongText('toast');
  const reader = await openChanges(source, 'public.t');
  await client.query('UPDATE t SET v = 1');
  await client.query('UPDATE t SET long = NULL');
  await client.query('UPDATE t SET v = 2');

  const changes = await reader.until(4);

  // The second change's value is looked up: by then it may be the NULL that the third change brings.
  expect(changes[1]!.after!['v']).toBe('1');
  expect([long, null]).toContain(changes[1]!.after!['long']);
  expect(values(changes.slice(2))).toEqual([
    { op: 'u', before: null, after: { id: '1', v: '1', long: null, other: null } },
    { op: 'u', before: null, after: { id: '1', v: '2', long: null, other: null } },
  ]);
});

test('under REPLICA IDENTITY FULL the value comes from the old row, also when it has changed meanwhile', async () => {
  const { client, source, long } = await tableWithLongText('toastfull', '; ALTER TABLE t REPLICA IDENTITY FULL');
  await client.query('UPDATE t SET v = 1');
  await client.query("UPDATE t SET long = 'short'");
  await client.query('DELETE FROM t');
  const reader = await openChanges(source, 'public.t');

  const changes = await reader.until(4);

  expect(values(changes.slice(1))).toEqual([
    { op: 'u', before: { id: '1', v: '0', long, other: null }, after: { id: '1', v: '1', long, other: null } },
    { op: 'u', before: { id: '1', v: '1', long, other: null }, after: { id: '1', v: '1', long: 'short', other: null } },
    { op: 'd', before: { id: '1', v: '1', long: 'short', other: null }, after: null },
  ]);
});

test('a changed key with an unchanged long value is one update that holds both', async () => {
  const { client, source, long } = await tableWithLongText('toastkey');
  const reader = await openChanges(source, 'public.t');
  await client.query('BEGIN; UPDATE t SET v = 1; UPDATE t SET id = 2; UPDATE t SET v = 3; COMMIT');
  const changes = await reader.until(4);

  // The first update's row has its new key by the time of the look-up: what is left to say is that key 1 goes.
  expect(values(changes.slice(1))).toEqual([
    { op: 'd', before: { id: '1', v: null, long: null, other: null }, after: null },
    { op: 'u', before: { id: '1', v: null, long: null, other: null }, after: { id: '2', v: '1', long, other: null } },
    { op: 'u', before: null, after: { id: '2', v: '3', long, other: null } },
  ]);
});

test('a row that is gone by the time of the look-up is sent as the delete of its old key', async () => {
  const { client, source } = await tableWithLongText('toastgone');
  await client.query('UPDATE t SET v = 1');
  await client.query('UPDATE t SET id = 2');
  await client.query('DELETE FROM t');
  const reader = await openChanges(source, 'public.t');

  const changes = await reader.until(4);

  expect(values(changes.slice(1)).map(({ op, before }) => [op, before!['id']])).toEqual([
    ['d', '1'],
    ['d', '1'],
    ['d', '2'],
  ]);
});

test('many looked-up values make several batches that can each be resumed from', async () => {
  const { client, source, uri: _, long } = await tableWithLongText('toastmany');
  await client.query(
    `INSERT INTO t SELECT i, 0, (SELECT long FROM t WHERE id = 1), 'o' FROM generate_series(2, 1000) i`,
  );
  const reader = await openChanges(source, 'public.t');
  await reader.until(1000);
  await client.query('UPDATE t SET v = 1');
  const [before] = [reader.batches.length];
  await reader.until(2000);

  expect(reader.batches.length - before).toBeGreaterThan(5);
  expect(reader.changes.slice(1000).every(({ after }) => after!['long'] === long)).toBe(true);
  const middle = reader.batches[before + 2]!;
  const at = reader.changes.findIndex(({ offset }) => offset === middle.envelope.offset) + 1;
  await reader.close();
  await source.assign({ tables: [{ table: 'public.t', fromOffset: middle.envelope.offset! }] });
  const second = await openChanges(source, 'public.t', middle.envelope.offset);
  expect(await second.until(2000 - at)).toEqual(reader.changes.slice(at));
});

test('a key of any type finds its row again', async () => {
  const { client, uri, name } = await freshDatabase(inject('postgres18'), 'toasttypes');
  await client.query(`
    CREATE TYPE mood AS ENUM ('so "so"', 'a\\b');
    CREATE TABLE t (a char(3), b numeric(10,2), c timestamptz, d mood, e uuid, f bytea, v int, long text STORAGE EXTERNAL, PRIMARY KEY (a, b, c, d, e, f))`);
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  const insert = `INSERT INTO t VALUES ('x{"', 1.50, '2024-02-29 12:00:00.123456+02', $2::mood, gen_random_uuid(), '\\x00ff', 0, ${LONG})`;
  await client.query(insert, ['a', 'so "so"']);
  await client.query(insert, ['b', 'a\\b']);
  await client.query('UPDATE t SET v = 1');

  const changes = await reader.until(4);

  expect(changes.map(({ op, after }) => [op, after!['long']!.length])).toEqual([
    ['c', 12_800],
    ['c', 12_800],
    ['u', 12_800],
    ['u', 12_800],
  ]);
});

test('the value is looked up in the table itself and not in one that inherits from it', async () => {
  const { client, source, long } = await tableWithLongText('toastchild', '; CREATE TABLE child () INHERITS (t)');
  await client.query("INSERT INTO child VALUES (1, 7, 'the child', NULL)");
  const reader = await openChanges(source, 'public.t');
  await client.query('UPDATE ONLY t SET v = 1');

  expect((await reader.until(2))[1]!.after).toEqual({ id: '1', v: '1', long, other: null });
});

test('a value whose column is gone by the time of the look-up ends the table with schema-lost', async () => {
  const { client, source } = await tableWithLongText('toastcolumn');
  await client.query('UPDATE t SET v = 1; ALTER TABLE t DROP COLUMN long');
  const reader = await openChanges(source, 'public.t');

  expect(await reader.failure()).toMatchObject({ code: 'schema-lost', context: { table: 'public.t' } });
});

test('a value is never taken from another table that got the name meanwhile', async () => {
  const { client, source } = await tableWithLongText('toastswap');
  await client.query(`
    UPDATE t SET v = 1;
    CREATE TABLE u AS SELECT id, v, 'of another table' AS long, other FROM t;
    ALTER TABLE t RENAME TO old; ALTER TABLE u RENAME TO t`);
  const reader = await openChanges(source, 'public.t');

  expect(await reader.failure()).toMatchObject({ code: 'table-not-found' });
  expect(reader.changes.map(({ op }) => op)).toEqual(['c']);
});

import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { openSink, openTable, shapeOf } from './sink-harness.ts';

const COLUMNS = { id: 'int64', name: 'string' };
const APPEND = { writeMode: 'append' } as const;

test('each change is a row that tells what happened, where and when', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'log', shapeOf(COLUMNS, ['id'], 'full'), APPEND);

  await host.write([{ op: 'c', after: { id: 1n, name: 'a' }, offset: '00ff' }], { phase: 'snapshot' });
  await host.write([
    { op: 'u', before: { id: 1n, name: 'a' }, after: { id: 1n, name: 'b' }, tsMicros: 1_600_000_000_123_456 },
    { op: 'd', before: { id: 1n, name: 'b' }, tsMicros: -1 },
  ]);
  await host.commit();

  await client.query("set timezone = 'UTC'");
  const { rows } = await client.query(
    'select id::int, name, _urutau_op as op, _urutau_position as position, _urutau_commit_ts::text as ts, _urutau_phase as phase, _old_id::int as old_id, _old_name as old_name from log',
  );
  expect(rows).toEqual([
    { id: 1, name: 'a', op: 'c', position: '00ff', ts: null, phase: 'snapshot', old_id: null, old_name: null },
    {
      id: 1,
      name: 'b',
      op: 'u',
      position: 'aa',
      ts: '2020-09-13 12:26:40.123456+00',
      phase: 'stream',
      old_id: 1,
      old_name: 'a',
    },
    {
      id: 1,
      name: 'b',
      op: 'd',
      position: 'aa',
      ts: '1969-12-31 23:59:59.999999+00',
      phase: 'stream',
      old_id: 1,
      old_name: 'b',
    },
  ]);
});

test('with a before-image of the key a delete tells the key alone', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'log', shapeOf(COLUMNS, ['id'], 'key'), APPEND);

  await host.write([{ op: 'd', before: { id: 1n, name: 'means nothing' } }]);
  await host.commit();

  const { rows, fields } = await client.query('select * from log');
  expect(rows).toMatchObject([{ id: '1', name: null, _urutau_op: 'd', _old_id: '1' }]);
  expect(fields.map(({ name }) => name)).not.toContain('_old_name');
});

test('deletes are left out where the pipeline skips them', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'log', shapeOf(COLUMNS, ['id']), {
    ...APPEND,
    options: { onDelete: 'skip' },
  });

  await host.write([{ op: 'd', before: { id: 1n } }]);
  await host.write([
    { op: 'c', after: { id: 2n } },
    { op: 'd', before: { id: 2n } },
  ]);
  await host.commit();

  expect((await client.query('select id::int, _urutau_op as op from log')).rows).toEqual([{ id: 2, op: 'c' }]);
});

test('a table without a key and without before-images takes the same row twice', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'log', shapeOf(COLUMNS, [], 'none'), APPEND);

  await host.write([
    { op: 'c', after: { id: 1n } },
    { op: 'c', after: { id: 1n } },
  ]);
  await host.commit();

  expect((await client.query('select count(*)::int as n from log')).rows).toEqual([{ n: 2 }]);
});

test.each([10, 700_000])('cuts, commits and truncates keep each row of %i bytes once', async (bytes) => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'log', shapeOf(COLUMNS, ['id']), APPEND);
  const name = 'x'.repeat(bytes);
  const insert = (id: bigint) => host.write([{ op: 'c', after: { id, name } }]);

  await host.truncate();
  await insert(1n);
  const first = await host.cut();
  await insert(2n);
  await Promise.all([host.commit(first), insert(3n)]);
  await host.cut();
  await insert(4n);
  await host.cut();
  await insert(5n);
  await host.commit();
  const ids = async () => (await client.query('select id::int from log order by id')).rows.map(({ id }) => id);
  expect(await ids()).toEqual([1, 2, 3, 4, 5]);

  await insert(6n);
  await host.truncate();
  await insert(7n);
  const cut = await host.cut();
  const commit = host.commit(cut);
  await insert(8n);
  await commit;
  expect(await ids()).toEqual([7]);
  await host.commit();
  expect(await ids()).toEqual([7, 8]);
});

test('texts of the server’s own types are cast on their way into an append table', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const shape = shapeOf({ id: 'int64', n: 'string numeric' }, ['id'], 'full');
  const host = await openTable(openSink(uri), 'log', shape, { ...APPEND, options: { source: 'postgres' } });

  await host.write([{ op: 'u', before: { id: 1n, n: '1.50' }, after: { id: 1n, n: '2.50' } }]);
  await host.commit();

  expect((await client.query('select n::text, _old_n::text as old from log')).rows).toEqual([
    { n: '2.50', old: '1.50' },
  ]);
});

test('a row that an append table refuses is named by key and place', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'log', shapeOf(COLUMNS, ['id']), APPEND);
  await client.query("alter table log add check (name <> 'bad')");

  await host.write([
    { op: 'c', after: { id: 1n, name: 'good' } },
    { op: 'c', after: { id: 2n, name: 'bad' } },
  ]);

  await expect(host.commit()).rejects.toMatchObject({
    code: 'row-refused',
    context: { seq: 1, row: 1, key: '{"id": 2}' },
  });
  expect((await client.query('select * from log')).rows).toEqual([]);
});

test('without ensure the target’s own columns tell that it is an append table', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const shape = shapeOf(COLUMNS, ['id']);
  const first = openSink(uri);
  const host = await openTable(first, 'log', shape, APPEND);
  await host.commit();

  const writer = await openSink(uri).openWriter({ mode: 'write', table: 'log', stream: 2 }, shape);

  expect(writer).toMatchObject({ plan: { mode: { kind: 'append' } } });
  expect((await client.query('select * from log')).rows).toEqual([]);
});

import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { type Change, openSink, openTable, shapeOf } from './sink-harness.ts';

const SHAPE = shapeOf({ id: 'int64', name: 'string' }, ['id']);

test('inserts, updates and deletes of one commit land together with the checkpoint', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const host = await openTable(sink, 'public.people', SHAPE);

  await host.write([
    { op: 'c', after: { id: 1n, name: 'ada' } },
    { op: 'c', after: { id: 2n, name: 'bob' } },
  ]);
  await host.write([
    { op: 'u', after: { id: 1n, name: 'ada lovelace' } },
    { op: 'd', before: { id: 2n } },
  ]);
  await host.commit();

  expect((await client.query('select * from people')).rows).toEqual([{ id: '1', name: 'ada lovelace' }]);
  expect(await sink.checkpoint('test', ['public.people', 'public.other'])).toEqual({
    'public.people': { checkpoint: host.previous },
    'public.other': { checkpoint: null },
  });
});

test('nothing is visible before the commit, and rows after the cut belong to the next one', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  const ids = async () => (await client.query('select id::int from people order by id')).rows.map(({ id }) => id);

  await host.write([{ op: 'c', after: { id: 1n } }]);
  const first = await host.cut();
  await host.write([{ op: 'c', after: { id: 2n } }]);
  expect(await ids()).toEqual([]);

  await host.commit(first);
  expect(await ids()).toEqual([1]);

  await host.commit();
  expect(await ids()).toEqual([1, 2]);
});

test('a changed key is a delete of the old one and an upsert of the new one, in order', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  await host.write([
    { op: 'c', after: { id: 1n, name: 'a' } },
    { op: 'u', before: { id: 1n }, after: { id: 2n, name: 'b' } },
    { op: 'c', after: { id: 1n, name: 'c' } },
    { op: 'u', before: { id: 2n }, after: { id: 3n, name: 'd' } },
  ]);
  await host.commit();

  expect((await client.query('select id::int, name from people order by id')).rows).toEqual([
    { id: 1, name: 'c' },
    { id: 3, name: 'd' },
  ]);
});

test('a delete by key works although other columns forbid NULL', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  await client.query(
    "create table people (id bigint primary key, name text not null); insert into people values (1, 'a')",
  );
  const host = await openTable(openSink(uri), 'people', SHAPE);

  await host.write([{ op: 'd', before: { id: 1n } }]);
  await host.commit();

  expect((await client.query('select * from people')).rows).toEqual([]);
});

test('the same key inserted twice in one commit ends as the last one', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);

  await host.write([
    { op: 'c', after: { id: 1n, name: 'first' } },
    { op: 'c', after: { id: 1n, name: 'second' } },
  ]);
  await host.commit();

  expect((await client.query('select name from people')).rows).toEqual([{ name: 'second' }]);
});

test('a truncate forgets what came before it and keeps what came after it', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n } }]);
  await host.commit();

  await host.write([{ op: 'c', after: { id: 2n } }]);
  await host.truncate();
  await host.write([{ op: 'c', after: { id: 3n } }]);
  await host.commit();

  expect((await client.query('select id::int from people')).rows).toEqual([{ id: 3 }]);
});

test('a table that a foreign key refers to is emptied by DELETE', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  await client.query('create table pets (owner bigint references people (id))');
  await host.write([{ op: 'c', after: { id: 1n } }]);
  await host.commit();

  await host.truncate();
  await host.commit(host.seq);

  expect((await client.query('select * from people')).rows).toEqual([]);
});

test('a composite key with text and a table of key columns alone are upserted', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const shape = shapeOf({ a: 'string', b: 'int32' }, ['b', 'a']);
  const host = await openTable(openSink(uri), 'odd schema.it\'s "odd"', shape);

  await host.write([
    { op: 'c', after: { a: "o'x", b: 1 } },
    { op: 'c', after: { a: "o'x", b: 1 } },
    { op: 'u', before: { a: "o'x", b: 1 }, after: { a: 'y', b: 1 } },
  ]);
  await host.commit();

  expect((await client.query(`select * from "odd schema"."it's ""odd"""`)).rows).toEqual([{ a: 'y', b: 1 }]);
});

test('several cuts may be covered by one commit, also when their rows already lie on two connections', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  const large = 'x'.repeat(700_000);

  await host.write([
    { op: 'c', after: { id: 1n, name: large } },
    { op: 'c', after: { id: 2n, name: 'gone' } },
  ]);
  await host.cut();
  await host.write([
    { op: 'd', before: { id: 2n } },
    { op: 'c', after: { id: 3n, name: large } },
  ]);
  await host.cut();
  await host.write([{ op: 'u', after: { id: 1n, name: 'small' } }]);
  await host.commit();

  expect((await client.query('select id::int, length(name) as length from people order by id')).rows).toEqual([
    { id: 1, length: 5 },
    { id: 3, length: 700_000 },
  ]);
});

/** What a source could do next with its rows, as numbers to choose by. */
const STEP = fc.record({
  what: fc.nat(99),
  id: fc.integer({ min: 1, max: 6 }),
  to: fc.integer({ min: 1, max: 6 }),
  end: fc.nat(99),
});

test('any sequence of changes in any cuts and commits leaves what a map would hold', { timeout: 300_000 }, async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  let tables = 0;

  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 60 }), async (steps) => {
      const table = `t${tables++}`;
      const host = await openTable(sink, table, SHAPE);
      const model = new Map<number, string>();
      let pending: Change[] = [];
      for (const [index, { what, id, to, end }] of steps.entries()) {
        pending.push(...changesOf(model, what, id, to, `v${index}`));
        if (what >= 97) {
          if (pending.length > 0) await host.write(pending);
          pending = [];
          await host.truncate();
          model.clear();
        }
        if (end < 60) continue;
        if (pending.length > 0) await host.write(pending);
        pending = [];
        if (end >= 90) await host.commit();
        else if (end >= 75) await host.cut();
      }
      if (pending.length > 0) await host.write(pending);
      await host.commit();

      const { rows } = await client.query(`select id::int, name from ${table} order by id`);
      expect(rows).toEqual([...model].sort(([a], [b]) => a - b).map(([id, name]) => ({ id, name })));
    }),
    { numRuns: 150 },
  );
});

/** The changes that a source would report, and the model after them. */
function changesOf(model: Map<number, string>, what: number, id: number, to: number, name: string): Change[] {
  const key = BigInt(id);
  if (!model.has(id)) {
    if (what >= 90) return [];
    model.set(id, name);
    return [{ op: 'c', after: { id: key, name } }];
  }
  if (what < 35) {
    model.delete(id);
    return [{ op: 'd', before: { id: key } }];
  }
  if (what < 70 || model.has(to)) {
    model.set(id, name);
    return [{ op: 'u', after: { id: key, name } }];
  }
  model.delete(id);
  model.set(to, name);
  return [{ op: 'u', before: { id: key }, after: { id: BigInt(to), name } }];
}

test.each<[string, Change]>([
  ['an insert', { op: 'c', after: { id: 1n } }],
  ['a delete', { op: 'd', before: { id: 1n } }],
  ['a changed key', { op: 'u', before: { id: 1n }, after: { id: 2n, name: 'b' } }],
])('%s whose key the source did not send is refused, and never finds no row', async (_, change) => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const shape = { ...shapeOf({ id: 'int64', name: 'string' }, ['name']), before: 'key' as const };
  const host = await openTable(openSink(uri), 'people', shape);

  await expect(host.write([change])).rejects.toMatchObject({
    code: 'row-refused',
    context: { column: 'name', row: 0 },
  });
  expect((await client.query('select from people')).rowCount).toBe(0);
});

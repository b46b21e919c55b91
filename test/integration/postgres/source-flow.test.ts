import { expect, inject, test } from 'vitest';
import { type Clock, systemClock } from '../../../drivers/postgres/source/clock.ts';
import { freshDatabase } from '../../services/databases.ts';
import { openChanges, startSource } from './source-harness.ts';

/** A hundred times as fast: half a minute is over in 0.3 s. */
const FAST: Clock = {
  ...systemClock,
  now: () => 100 * systemClock.now(),
  every: (intervalMs, work) => systemClock.every(intervalMs / 100, work),
};

const FILL = "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 40000) i";

async function twoTables(prefix: string, clock?: Clock) {
  const database = await freshDatabase(inject('postgres18'), prefix);
  await database.client.query('CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE u (id int PRIMARY KEY)');
  const source = startSource(database.uri, database.name, clock);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }, { table: 'public.u' }] });
  return { ...database, source, tables };
}

test('a full queue makes the reader wait, and loses nothing when it is taken at last', async () => {
  const { client, source } = await twoTables('full');
  const [t, u] = [await openChanges(source, 'public.t'), await openChanges(source, 'public.u')];
  await client.query(FILL);
  await client.query('INSERT INTO u VALUES (1)');

  const first = u.until(1);
  await t.until(40_000);
  await first;

  expect(t.changes.map(({ after }) => Number(after!['id']))).toEqual(Array.from({ length: 40_000 }, (_, i) => i + 1));
});

test('a stream that is open and not read ends as a slow consumer once it holds up another one', async () => {
  const { client, source } = await twoTables('slow', FAST);
  const [t, u] = [await openChanges(source, 'public.t'), await openChanges(source, 'public.u')];
  await client.query('INSERT INTO t VALUES (0, NULL)');
  await t.until(1);
  await client.query(FILL);
  await client.query('INSERT INTO u VALUES (1)');

  await u.until(1);

  expect(await t.failure()).toMatchObject({ code: 'slow-consumer', context: { table: 'public.t' } });
});

test('a stream that is not read is left alone while a chunk of its table is open', async () => {
  const { client, source, tables } = await twoTables('chunkopen', FAST);
  const [t, u] = [await openChanges(source, 'public.t'), await openChanges(source, 'public.u')];
  await client.query('INSERT INTO t VALUES (0, NULL)');
  await t.until(1);
  const { ranges } = await source.plan({ table: 'public.t', ranges: 1 });
  const chunk = await source.read({
    table: 'public.t',
    mode: 'chunk',
    range: ranges[0]!,
    notBefore: tables['public.t']!.start,
  });
  const batches = chunk.open(new AbortController().signal)[Symbol.asyncIterator]();
  await batches.next();
  await client.query(FILL);
  await client.query('INSERT INTO u VALUES (1)');
  let uHasIt = false;
  const first = u.until(1).then(() => {
    uHasIt = true;
  });

  const waited = systemClock.now() + 600;
  await expect.poll(() => systemClock.now() > waited, { timeout: 5000 }).toBe(true);
  expect(uHasIt).toBe(false);

  await batches.return!();
  await first;
  expect(await t.failure()).toMatchObject({ code: 'slow-consumer' });
});

test('a table that nobody opens holds the others up for a minute at most and then wants a new assignment', async () => {
  const { client, source, tables } = await twoTables('lapsed', FAST);
  const u = await openChanges(source, 'public.u');
  await client.query(FILL);
  await client.query('INSERT INTO u VALUES (1)');

  await u.until(1);

  const fromOffset = tables['public.t']!.start;
  await expect(openChanges(source, 'public.t', fromOffset)).rejects.toMatchObject({ code: 'reassign-needed' });
  await source.assign({ tables: [{ table: 'public.t', fromOffset }] });
  const again = await openChanges(source, 'public.t', fromOffset);
  expect((await again.until(40_000)).length).toBe(40_000);
});

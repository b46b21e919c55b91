import type { SourceBatch } from '@urutau/sdk';
import { expect, inject, test } from 'vitest';
import type { PostgresSource } from '../../../drivers/postgres/source/postgres-source.ts';
import { freshDatabase } from '../../services/databases.ts';
import { type Change, changesOf, openChanges, readAll, startSource } from './source-harness.ts';

/** Reads one range to its end, chunk by chunk. */
async function readRange(
  source: PostgresSource,
  table: string,
  range: string,
  rows: number,
  notBefore: string,
): Promise<Change[]> {
  const changes: Change[] = [];
  for (let next: string | null | undefined = range; next; ) {
    const read = await source.read({ table, mode: 'chunk', range: next, rows, notBefore });
    const batches = await readAll(read);
    changes.push(...batches.flatMap((batch) => changesOf(batch, read.shape)));
    next = batches.at(-1)!.envelope.next;
  }
  return changes;
}

test('the ranges of a plan bring every row exactly once, also those on pages that were added after the plan', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'ranges');
  await client.query(
    "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 50000) i; ANALYZE t",
  );
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const { ranges, estimatedRows } = await source.plan({ table: 'public.t', ranges: 4 });
  await client.query("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(50001, 60000) i");

  const rows = [];
  for (const range of ranges)
    rows.push(...(await readRange(source, 'public.t', range, 9000, tables['public.t']!.start)));

  expect({ ranges: ranges.length, estimatedRows }).toEqual({ ranges: 4, estimatedRows: 50_000 });
  expect(rows.every(({ op, before }) => op === 'c' && before === null)).toBe(true);
  expect(rows.map(({ after }) => Number(after!['id'])).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 60_000 }, (_, i) => i + 1),
  );
});

test('a row of a snapshot that cannot be held is named by its key, also when more rows come behind it', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'refusedrow');
  const id = '0191e0a2-0b0c-7d0e-8f00-1234567890ab';
  await client.query(`CREATE TABLE t (id uuid PRIMARY KEY, d date, v text);
    INSERT INTO t VALUES ('${id}', 'infinity', 'x');
    INSERT INTO t SELECT gen_random_uuid(), '2020-01-01', repeat('x', 1000) FROM generate_series(1, 2000)`);
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const [range] = (await source.plan({ table: 'public.t', ranges: 1 })).ranges;

  await expect(readRange(source, 'public.t', range!, 9000, tables['public.t']!.start)).rejects.toMatchObject({
    code: 'row-refused',
    remedy: expect.stringContaining('urutau-host table resume'),
    context: { table: 'public.t', column: 'd', key: `id=${id}` },
  });
});

test('an empty table has one range whose only batch says that nothing is left', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'empty');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const { ranges } = await source.plan({ table: 'public.t', ranges: 8 });

  const read = await source.read({
    table: 'public.t',
    mode: 'chunk',
    range: ranges[0]!,
    rows: 10,
    notBefore: tables['public.t']!.start,
  });

  expect(ranges).toHaveLength(1);
  expect(await readAll(read)).toEqual([{ batch: null, envelope: { next: null, phase: 'snapshot' } }]);
});

test('the leaves of a partitioned table are read one by one and its changes come under its own name', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'partitions');
  await client.query(`
    CREATE TABLE t (id int, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TABLE t_a PARTITION OF t FOR VALUES IN ('a');
    CREATE TABLE t_b (region text NOT NULL, id int NOT NULL, PRIMARY KEY (id, region));
    ALTER TABLE t ATTACH PARTITION t_b FOR VALUES IN ('b');
    INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 1000) i`);
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  const { ranges } = await source.plan({ table: 'public.t', ranges: 2 });

  const rows = [];
  for (const range of ranges)
    rows.push(...(await readRange(source, 'public.t', range, 300, tables['public.t']!.start)));
  await client.query("UPDATE t SET region = 'a' WHERE id = 1");

  expect(rows.map(({ after }) => `${after!['id']}${after!['region']}`).sort()).toEqual(
    Array.from({ length: 1000 }, (_, i) => `${i + 1}${(i + 1) % 2 === 0 ? 'a' : 'b'}`).sort(),
  );
  expect((await reader.until(2)).map(({ op, before, after }) => ({ op, before, after }))).toEqual([
    { op: 'd', before: { id: '1', region: 'b' }, after: null },
    { op: 'c', before: null, after: { id: '1', region: 'a' } },
  ]);
});

test('a table that was rewritten after its plan is refused with plan-lost', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'rewrite');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const { ranges } = await source.plan({ table: 'public.t', ranges: 1 });
  await client.query('VACUUM FULL t');

  const read = source.read({ table: 'public.t', mode: 'chunk', range: ranges[0]!, rows: 10, notBefore: '' });

  await expect(read).rejects.toMatchObject({ code: 'plan-lost', context: { table: 'public.t' } });
});

test('a chunk waits until it shows every transaction that the stream has brought', async () => {
  const { uri, client, name, connect } = await freshDatabase(inject('postgres18'), 'view');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  // Runs when the reader starts: an earlier reader may have decoded its commit, for all that this one knows.
  const running = await connect();
  await running.query('BEGIN; SELECT pg_current_xact_id()');
  const slotMade = source.assign({ tables: [{ table: 'public.t' }] });
  await running.query('COMMIT');
  await slotMade;
  await running.query('BEGIN; INSERT INTO t VALUES (1)');
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const { ranges } = await source.plan({ table: 'public.t', ranges: 1 });
  const { start } = tables['public.t']!;
  let done = false;

  const rows = readRange(source, 'public.t', ranges[0]!, 10, start).finally(() => {
    done = true;
  });
  const tries = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query = 'ROLLBACK'";
  await expect.poll(async () => (await client.query(tries)).rowCount).toBe(1);
  expect(done).toBe(false);
  await running.query('COMMIT');

  expect((await rows).map(({ after }) => after)).toEqual([{ id: '1' }]);
});

test('chunks between changes converge with the table while everything in it is written to', async () => {
  const { uri, client, name, connect } = await freshDatabase(inject('postgres18'), 'converge');
  await client.query(
    "CREATE TABLE t (id int PRIMARY KEY, v int, pad text); INSERT INTO t SELECT i, 0, repeat('p', 200) FROM generate_series(1, 5000) i",
  );
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  const copy = new Map<string, string>();
  const apply = (changes: readonly Change[]) => {
    for (const { before, after } of changes) {
      if (before) copy.delete(before['id']!);
      if (after) copy.set(after['id']!, after['v']!);
    }
  };
  const writer = await connect();
  let writing = true;
  const written = (async () => {
    for (let round = 1; writing; round++) {
      await writer.query('UPDATE t SET v = $1 WHERE id % 7 = $1::int % 7', [round]);
      await writer.query('UPDATE t SET id = id + 10000 * $1::int WHERE id % 97 = $1::int % 97 AND id < 10000', [round]);
      await writer.query('DELETE FROM t WHERE id % 101 = $1::int % 101', [round]);
      await writer.query(
        "INSERT INTO t SELECT i, $1, repeat('q', 300) FROM generate_series(1, 5000, 53) i ON CONFLICT DO NOTHING",
        [round],
      );
    }
  })();

  let seen = 0;
  const passWhatIsThere = async () => {
    await reader.pull();
    apply(reader.changes.slice(seen));
    seen = reader.changes.length;
  };
  let low = tables['public.t']!.start;
  const { ranges } = await source.plan({ table: 'public.t', ranges: 1 });
  for (let range: string | null | undefined = ranges[0]; range; ) {
    const read = await source.read({ table: 'public.t', mode: 'chunk', range, rows: 400, notBefore: low });
    const batches = await readAll(read);
    apply(batches.flatMap((batch) => changesOf(batch, read.shape)));
    range = batches.at(-1)!.envelope.next;
    await passWhatIsThere();
    low = reader.batches.at(-1)!.envelope.offset!;
  }
  writing = false;
  await written;
  await writer.query('INSERT INTO t VALUES (0, 0, NULL)');
  while (!copy.has('0')) await passWhatIsThere();

  const { rows } = await client.query('SELECT id::text, v::text FROM t');
  expect(new Map([...copy].sort())).toEqual(new Map(rows.map(({ id, v }) => [id, v] as [string, string]).sort()));
});

test('a consistent snapshot and the changes from its end give each state once', async () => {
  const { uri, client, name, connect } = await freshDatabase(inject('postgres18'), 'picture');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 1000)');
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const writer = await connect();
  let writing = true;
  const written = (async () => {
    for (let id = 1001; writing; id++) await writer.query('INSERT INTO t VALUES ($1)', [id]);
  })();

  const read = await source.read({ table: 'public.t', mode: 'snapshot' });
  const batches = await readAll(read);
  writing = false;
  await written;
  await writer.query('INSERT INTO t VALUES (0)');
  const { endOffset } = read.metadata;
  await source.assign({ tables: [{ table: 'public.t', fromOffset: endOffset! }] });
  const reader = await openChanges(source, 'public.t', endOffset);
  while (!reader.changes.some(({ after }) => after!['id'] === '0')) await reader.pull();

  expect(Buffer.compare(Buffer.from(endOffset!, 'base64'), Buffer.from(tables['public.t']!.start, 'base64'))).toBe(1);
  const { rows } = await client.query('SELECT count(*)::int AS count FROM t');
  expect(rowsIn(batches) + reader.changes.length).toBe(rows[0].count);
  const { rows: slots } = await client.query(
    'SELECT slot_name FROM pg_replication_slots WHERE database = current_database()',
  );
  expect(slots).toEqual([{ slot_name: name }]);
});

function rowsIn(batches: readonly SourceBatch[]): number {
  return batches.reduce((sum, { batch }) => sum + (batch?.rows ?? 0), 0);
}

test('a table that is rewritten between the picture and its reading is not taken for an empty one', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'picturerewrite');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)');
  const source = startSource(uri, name);
  const picture = await source.read({ table: 'public.t', mode: 'snapshot' });
  await client.query('ALTER TABLE t ALTER COLUMN id TYPE bigint');

  await expect(readAll(picture)).rejects.toMatchObject({ code: 'source-unavailable' });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UrutauError } from '@urutau/sdk';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { ownPostgres } from '../../services/postgres.ts';
import { type ChangesReader, HASTY, openChanges, startSource } from './source-harness.ts';

test('inserts, updates, deletes, changed keys and truncates arrive in order with what the log holds of them', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'stream');
  await client.query('CREATE TABLE t (id int PRIMARY KEY, v text)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');

  await client.query("INSERT INTO t VALUES (1, 'a'), (2, NULL)");
  await client.query("UPDATE t SET v = 'b' WHERE id = 1");
  await client.query('UPDATE t SET id = 10 WHERE id = 1');
  await client.query('DELETE FROM t WHERE id = 2');
  await client.query('TRUNCATE t');
  await client.query("INSERT INTO t VALUES (3, 'c')");

  const changes = await reader.until(7);
  expect(changes.map(({ op, before, after }) => ({ op, before, after }))).toEqual([
    { op: 'c', before: null, after: { id: '1', v: 'a' } },
    { op: 'c', before: null, after: { id: '2', v: null } },
    { op: 'u', before: null, after: { id: '1', v: 'b' } },
    { op: 'u', before: { id: '1', v: null }, after: { id: '10', v: 'b' } },
    { op: 'd', before: { id: '2', v: null }, after: null },
    { op: 'truncate', before: null, after: null },
    { op: 'c', before: null, after: { id: '3', v: 'c' } },
  ]);
});

test('under REPLICA IDENTITY FULL each update and delete brings the whole row as it was', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'full');
  await client.query('CREATE TABLE t (a int, b text); ALTER TABLE t REPLICA IDENTITY FULL');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');

  await client.query("INSERT INTO t VALUES (1, 'x')");
  await client.query('UPDATE t SET b = NULL');
  await client.query('DELETE FROM t');

  const changes = await reader.until(3);
  expect(reader.shape).toMatchObject({ primaryKey: [], before: 'full' });
  expect(changes.slice(1).map(({ op, before, after }) => ({ op, before, after }))).toEqual([
    { op: 'u', before: { a: '1', b: 'x' }, after: { a: '1', b: null } },
    { op: 'd', before: { a: '1', b: null }, after: null },
  ]);
});

test('a stream that begins at any offset of a recorded one brings exactly what came after it', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'resume');
  await client.query('CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE u (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  const tables = [{ table: 'public.t' }, { table: 'public.u' }];
  const { tables: starts } = await source.assign({ tables });
  const first = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t SELECT i, 0 FROM generate_series(1, 3) i');
  await client.query(
    'BEGIN; INSERT INTO u VALUES (1); UPDATE t SET v = 1; INSERT INTO u VALUES (2); DELETE FROM t WHERE id = 2; COMMIT',
  );
  await client.query('INSERT INTO u VALUES (3)');
  await client.query('TRUNCATE t; INSERT INTO t VALUES (9, 9)');
  const recorded = [...(await first.until(9))];
  await first.close();

  const from = [starts['public.t']!.start, ...recorded.map(({ offset }) => offset)];
  for (const [index, fromOffset] of from.entries()) {
    await source.assign({
      tables: [
        { table: 'public.t', fromOffset },
        { table: 'public.u', fromOffset: starts['public.u']!.start },
      ],
    });
    const reader = await openChanges(source, 'public.t', fromOffset);
    const suffix = recorded.slice(index);
    expect(await reader.until(suffix.length)).toEqual(suffix);
    await reader.close();
  }
});

test('a large transaction is cut into batches whose resume points lie inside it', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'large');
  await client.query('CREATE TABLE t (id int PRIMARY KEY, v text)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query("INSERT INTO t SELECT i, repeat('x', 90) FROM generate_series(1, 60000) i");

  await reader.until(60_000);

  expect(reader.batches.length).toBeGreaterThan(3);
  const [piece] = reader.batches;
  const rest = 60_000 - piece!.batch!.rows;
  await source.assign({ tables: [{ table: 'public.t', fromOffset: piece!.envelope.offset! }] });
  const second = await openChanges(source, 'public.t', piece!.envelope.offset);
  await second.until(rest);
  expect(second.changes).toEqual(reader.changes.slice(-rest));
});

test('the log is released by what is confirmed, for the least of all tables, and not by what was read', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'confirm');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE held (id int PRIMARY KEY)');
  const source = startSource(uri, name, HASTY);
  const slot = async () =>
    (await client.query('SELECT confirmed_flush_lsn AS lsn FROM pg_replication_slots WHERE slot_name = $1', [name]))
      .rows[0].lsn;
  const nextReport = async () => {
    const { rows } = await client.query('SELECT clock_timestamp() AS now');
    const later =
      'SELECT reply_time > $2 AS later FROM pg_stat_replication JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = $1';
    await expect.poll(async () => (await client.query(later, [name, rows[0].now])).rows).toEqual([{ later: true }]);
  };
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }, { table: 'public.held', hold: true }] });
  const reader = await openChanges(source, 'public.t');
  const begin = await slot();

  await client.query('INSERT INTO t VALUES (1)');
  await reader.until(1);
  await source.confirm({ 'public.t': reader.batches[0]!.envelope.offset! });
  await nextReport();
  expect(await slot()).toBe(begin);

  await source.confirm({ 'public.held': (await source.progress(['public.t'])).tables['public.t']!.decoded });
  await expect.poll(slot).not.toBe(begin);
  const moved = await slot();
  await source.confirm({ 'public.t': tables['public.t']!.start });
  await nextReport();
  expect(await slot()).toBe(moved);
});

test('a changed column ends the stream before the first row of the new shape, and the next one has it', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'schema');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1)');
  await client.query('ALTER TABLE t ADD COLUMN v numeric(6,2) DEFAULT 1.5');
  await client.query('INSERT INTO t VALUES (2)');

  const failure = await reader.failure();

  expect(failure).toMatchObject({ code: 'schema-changed', context: { table: 'public.t' } });
  expect(reader.changes.map(({ after }) => after)).toEqual([{ id: '1' }]);
  const next = await openChanges(source, 'public.t', (failure as UrutauError).context.offset);
  expect(next.shape.fields.map(({ name }) => name)).toEqual(['id', 'v']);
  expect(next.shape.schemaId).not.toBe(reader.shape.schemaId);
  await client.query('INSERT INTO t VALUES (3)');
  expect((await next.until(2)).map(({ after }) => after!['id'])).toEqual(['2', '3']);
});

test('a log that was written under an older shape than the table has now is read with the shape of then', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'older');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const { start, schemaId } = tables['public.t']!;
  await client.query('INSERT INTO t VALUES (1)');
  await client.query('ALTER TABLE t ADD COLUMN v int');
  await client.query('INSERT INTO t VALUES (2, 2)');

  await source.assign({ tables: [{ table: 'public.t', fromOffset: start }] });
  const streams: ChangesReader[] = [];
  for (
    let from: string | undefined = start;
    ;
    from = ((await streams.at(-1)!.failure()) as UrutauError).context.offset
  ) {
    streams.push(await openChanges(source, 'public.t', from));
    if (streams.at(-2)?.changes.length === 1) break;
  }
  await streams.at(-1)!.until(1);

  const [older, newer] = streams.slice(-2);
  expect(older!.shape.schemaId).toBe(schemaId);
  expect(older!.changes.map(({ after }) => after)).toEqual([{ id: '1' }]);
  expect(newer!.changes.map(({ after }) => after)).toEqual([{ id: '2', v: '2' }]);
});

test('a column of a type that has no kind ends the stream with its name and a remedy', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'type');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('ALTER TABLE t ADD COLUMN tags text[]');
  await client.query('INSERT INTO t VALUES (1)');

  expect(await reader.failure()).toMatchObject({
    code: 'type-unsupported',
    context: { table: 'public.t', column: 'tags' },
  });
});

test('a value that its column cannot hold ends only its own table’s stream and names the row', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'refused');
  await client.query('CREATE TABLE t (id int PRIMARY KEY, d date); CREATE TABLE u (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }, { table: 'public.u' }] });
  const [t, u] = [await openChanges(source, 'public.t'), await openChanges(source, 'public.u')];
  await client.query("INSERT INTO t VALUES (7, 'infinity')");
  await client.query('INSERT INTO u VALUES (1)');

  expect(await t.failure()).toMatchObject({
    code: 'row-refused',
    context: { table: 'public.t', column: 'd', key: 'id=7' },
    remedy: expect.stringContaining('urutau-host table resync'),
  });
  expect(await u.until(1)).toHaveLength(1);
});

test('a dropped table is noticed although the log says nothing of it', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'dropped');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)');
  const source = startSource(uri, name, HASTY);
  await source.assign({ tables: [{ table: 'public.t' }, { table: 'public.u' }] });
  const [t, u] = [await openChanges(source, 'public.t'), await openChanges(source, 'public.u')];
  await client.query('DROP TABLE t; ALTER TABLE u RENAME TO v');

  expect(await t.failure()).toMatchObject({ code: 'table-not-found', message: 'public.t: it was dropped' });
  expect(await u.failure()).toMatchObject({ code: 'table-not-found', message: 'public.u: it was renamed to public.v' });
});

test('a stream that was closed goes on at the last offset sent, and anywhere else asks for a new assignment', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'reopen');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const first = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1)');
  await first.until(1);
  await first.close();
  await client.query('INSERT INTO t VALUES (2)');

  const second = await openChanges(source, 'public.t', first.batches.at(-1)!.envelope.offset);
  expect((await second.until(1)).map(({ after }) => after)).toEqual([{ id: '2' }]);
  await expect(openChanges(source, 'public.t', tables['public.t']!.start)).rejects.toMatchObject({
    code: 'reassign-needed',
  });
});

test('an assignment that only removes tables lets the others go on; any other ends every stream', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'reassign');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }, { table: 'public.u' }] });
  const [t, u] = [await openChanges(source, 'public.t'), await openChanges(source, 'public.u')];

  await source.assign({ tables: [{ table: 'public.t' }] });
  expect(await u.failure()).toMatchObject({ code: 'reassigned' });
  await client.query('INSERT INTO t VALUES (1)');
  await t.until(1);

  await source.assign({
    tables: [{ table: 'public.t', fromOffset: t.batches[0]!.envelope.offset! }, { table: 'public.u' }],
  });
  expect(await t.failure()).toMatchObject({ code: 'reassigned' });
});

test('progress passes the head of an idle log, and its offset is where the stream can be opened again', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'progress');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1)');
  await reader.until(1);
  await client.query('INSERT INTO other VALUES (1)');

  const head = Buffer.from(await source.head(), 'base64');
  const progress = async () => (await source.progress(['public.t'])).tables['public.t']!;
  await expect
    .poll(async () => Buffer.compare(Buffer.from((await progress()).decoded, 'base64'), head))
    .toBeGreaterThan(-1);

  const { stream, seq, decoded } = await progress();
  expect({ stream, seq }).toEqual({ stream: reader.stream, seq: 1 });
  await reader.close();
  const next = await openChanges(source, 'public.t', decoded);
  await client.query('INSERT INTO t VALUES (2)');
  expect((await next.until(1)).map(({ after }) => after)).toEqual([{ id: '2' }]);
});

test('a lost connection ends every stream as source-unavailable, and a new assignment goes on without a gap', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'lost');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1)');
  await reader.until(1);
  await client.query('SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1', [name]);

  expect(await reader.failure()).toMatchObject({ code: 'source-unavailable' });
  await client.query('INSERT INTO t VALUES (2)');
  const fromOffset = reader.batches[0]!.envelope.offset!;
  await source.assign({ tables: [{ table: 'public.t', fromOffset }] });
  const next = await openChanges(source, 'public.t', fromOffset);
  expect((await next.until(1)).map(({ after }) => after)).toEqual([{ id: '2' }]);
});

test('a server that is told to stop is not kept waiting for changes that nobody has confirmed', async () => {
  const server = await ownPostgres();
  const { uri, client, name } = await freshDatabase(server, 'stopped');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name, HASTY);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1)');
  await reader.until(1);

  const failure = reader.failure();
  await server.stop();

  expect(await failure).toMatchObject({ code: 'source-unavailable' });
  // A server that has to be killed at last does not come to write this line.
  expect(readFileSync(join(server.folder, 'postgres.log'), 'utf8')).toContain('database system is shut down');
});

test('a partition that comes later with another replica identity ends the table before its first change', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'laterpart');
  await client.query(`
    CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id); ALTER TABLE t REPLICA IDENTITY FULL;
    CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10); ALTER TABLE t1 REPLICA IDENTITY FULL`);
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1, 1); CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)');
  await client.query('INSERT INTO t VALUES (11, 1); UPDATE t SET v = 2 WHERE id = 11');

  expect(await reader.failure()).toMatchObject({
    code: 'precondition-failed',
    message: 'public.t: its partition public.t2 has another replica identity than the table',
  });
  expect(reader.changes.map(({ after }) => after)).toEqual([{ id: '1', v: '1' }]);
});

test('another primary key is another shape under REPLICA IDENTITY FULL too', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'fullkey');
  await client.query('CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL); ALTER TABLE t REPLICA IDENTITY FULL');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (1, 1)');
  await reader.until(1);
  await client.query('ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, v)');
  await client.query('INSERT INTO t VALUES (1, 2)');

  expect(await reader.failure()).toMatchObject({ code: 'schema-changed' });
  expect((await openChanges(source, 'public.t')).shape.primaryKey).toEqual(['id', 'v']);
});

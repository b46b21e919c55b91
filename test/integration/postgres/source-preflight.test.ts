import type { UrutauError } from '@urutau/sdk';
import { expect, inject, test } from 'vitest';
import { systemClock } from '../../../drivers/postgres/source/clock.ts';
import { sourceConfig } from '../../../drivers/postgres/source/config.ts';
import { PostgresSource } from '../../../drivers/postgres/source/postgres-source.ts';
import { freshDatabase } from '../../services/databases.ts';
import { ownPostgres } from '../../services/postgres.ts';
import { waitFor } from '../pipeline/host-process.ts';
import { openChanges, readAll, SILENT, startSource } from './source-harness.ts';

const rejection = async (work: Promise<unknown>): Promise<UrutauError> =>
  work.then(
    () => Promise.reject(new Error('expected a failure')),
    (error) => error,
  );

const problems = ({ context }: UrutauError) => context.failures!.map(({ problem }) => problem);

test('everything that is wrong with the tables is told at once, each with its remedy', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'preflight');
  await client.query(`
    CREATE TABLE nokey (id int);
    CREATE TABLE nothing (id int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING;
    CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
    CREATE VIEW v AS SELECT 1 AS id;
    CREATE TABLE types (id int PRIMARY KEY, tags text[], span tstzrange);
    CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9);
    ALTER TABLE p REPLICA IDENTITY FULL;
    CREATE TABLE fine (id int PRIMARY KEY)`);
  const source = startSource(uri, name);
  const tables = ['nokey', 'nothing', 'unlogged', 'v', 'types', 'p', 'p1', 'missing', 'fine'].map((table) => ({
    table: `public.${table}`,
  }));

  const failure = await rejection(source.assign({ tables, check: true }));

  expect(failure.code).toBe('precondition-failed');
  expect(problems(failure)).toEqual([
    'public.nokey has no primary key',
    'public.nothing has REPLICA IDENTITY NOTHING',
    'public.unlogged is not in the log',
    'public.v is a view',
    'public.types: column tags: the array type text[] is not supported yet',
    'public.types: column span: the range type tstzrange is not supported yet',
    'partition public.p1 has another replica identity than public.p',
    'public.p1 is a partition',
    'table public.missing does not exist',
  ]);
  expect(
    failure.context.failures!.every(({ remedy, table }) => remedy.length > 10 && table?.startsWith('public.')),
  ).toBe(true);
});

test('a check changes nothing and tells where each table would begin', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'check');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10); ANALYZE t');
  const source = startSource(uri, name);

  const { source: identity, tables } = await source.assign({ tables: [{ table: 'public.t' }], check: true });

  expect(identity).toMatch(new RegExp(`^postgres:[0-9]+/${name}$`));
  expect(tables['public.t']).toMatchObject({ estimatedRows: 10, schemaId: expect.any(String) });
  const { rows } = await client.query(
    'SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) AS made',
  );
  expect(rows).toEqual([{ made: '0' }]);
});

test('keys that do not name a row at every moment, and partitions that are not in the log, are refused', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'keys');
  await client.query(`
    CREATE TABLE late (id int PRIMARY KEY DEFERRABLE);
    CREATE TABLE made (a int NOT NULL, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY);
    CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE UNLOGGED TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)`);
  const source = startSource(uri, name);
  const tables = ['late', 'made', 'p'].map((table) => ({ table: `public.${table}` }));

  const failure = await rejection(source.assign({ tables: [...tables, { table: 'late' }], check: true }));

  expect(problems(failure)).toEqual([
    'public.late has no primary key',
    'key column id of public.made is generated and not in the log',
    'partition public.p1 is not in the log',
    'table late is named without its schema',
  ]);
});

test('rows that a policy hides from the user are never taken for missing', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'policy');
  await client.query(`
    CREATE ROLE ${name} LOGIN REPLICATION;
    GRANT CREATE ON DATABASE ${name} TO ${name};
    GRANT CREATE ON SCHEMA public TO ${name};
    CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t OWNER TO ${name};
    INSERT INTO t VALUES (1), (2);
    CREATE POLICY partly ON t USING (id = 1)`);
  const url = new URL(uri);
  url.username = name;
  const source = startSource(url.href, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  await client.query('ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY');

  const { ranges } = await source.plan({ table: 'public.t', ranges: 1 });
  const chunk = await source.read({ table: 'public.t', mode: 'chunk', range: ranges[0]!, rows: 10, notBefore: '' });
  const read = await rejection(readAll(chunk));
  const failure = await rejection(source.assign({ tables: [{ table: 'public.t' }], check: true }));
  await source.close();
  await client.query(`DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`);

  expect(read).toMatchObject({ code: 'precondition-failed' });
  expect(problems(failure)).toEqual([`row-level security may hide rows of public.t from user ${name}`]);
});

test('tables that inherit from a published one are left alone', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'inherit');
  await client.query('CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE child () INHERITS (t)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');

  // The child has no key: were it published, the server would refuse its updates.
  await client.query('INSERT INTO child VALUES (1, 1); UPDATE child SET v = 2; INSERT INTO t VALUES (3, 3)');

  expect((await reader.until(1)).map(({ after }) => after)).toEqual([{ id: '3', v: '3' }]);
  await source.teardown({ writer: 'w', tables: ['public.t'], check: false });
  expect((await client.query('SELECT FROM pg_publication_tables')).rowCount).toBe(0);
});

test('a user without rights is told which ones are missing', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'rights');
  await client.query(`CREATE TABLE t (id int PRIMARY KEY); CREATE ROLE ${name} LOGIN`);
  const url = new URL(uri);
  url.username = name;
  const source = startSource(url.href, name);

  const failure = await rejection(source.assign({ tables: [{ table: 'public.t' }], check: true }));
  await source.close();
  await client.query(`DROP ROLE ${name}`);

  expect(problems(failure)).toEqual([
    `user ${name} may not replicate`,
    `user ${name} may not create publication ${name}_pub`,
    `user ${name} may not read public.t`,
    `user ${name} does not own public.t and may not publish it`,
  ]);
});

test('a server that does not write a logical log is told how to do so', async () => {
  const server = await ownPostgres({ settings: { wal_level: 'replica' } });
  const { uri, client, name } = await freshDatabase(server, 'level');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);

  const failure = await rejection(source.assign({ tables: [{ table: 'public.t' }] }));
  await source.close();

  expect(problems(failure)).toEqual(['wal_level is replica']);
});

test('a slot of another plugin, and a foreign publication that leaves something out, are refused', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'foreign');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)');
  await client.query("SELECT pg_create_logical_replication_slot($1, 'test_decoding')", [name]);
  await client.query("CREATE PUBLICATION theirs FOR TABLE t WITH (publish = 'insert')");
  const url = new URL(uri);
  const config = sourceConfig.parse({
    slotName: name,
    postgres: {
      host: url.hostname,
      port: Number(url.port),
      username: url.username,
      database: name,
      publication: { name: 'theirs', create: 'existing' },
    },
  });
  const source = new PostgresSource({ config, log: SILENT, clock: systemClock });

  const failure = await rejection(source.assign({ tables: [{ table: 'public.t' }, { table: 'public.u' }] }));
  await source.close();

  expect(problems(failure)).toEqual([
    `replication slot ${name} is of plugin test_decoding, not pgoutput`,
    'publication theirs leaves out update, delete, truncate',
    'publication theirs lacks public.u',
  ]);
});

test('a slot that was dropped, or recreated, while nobody read is a lost position of each table that had one', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'lostslot');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)');
  const first = startSource(uri, name);
  const { tables } = await first.assign({ tables: [{ table: 'public.t' }] });
  await first.close();
  const fromOffset = tables['public.t']!.start;
  const request = { tables: [{ table: 'public.t', fromOffset }, { table: 'public.u' }] };
  const source = startSource(uri, name);

  await waitFor('the slot being free', 10_000, async () => {
    const { rows } = await client.query('SELECT active FROM pg_replication_slots WHERE slot_name = $1', [name]);
    return rows[0].active ? null : true;
  });
  await client.query('SELECT pg_drop_replication_slot($1)', [name]);
  const dropped = await rejection(source.assign(request));
  await client.query('INSERT INTO t VALUES (1)');
  await client.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", [name]);
  const recreated = await rejection(source.assign(request));

  expect(dropped).toMatchObject({
    code: 'position-lost',
    context: { failures: [{ code: 'position-lost', table: 'public.t' }] },
  });
  expect(recreated).toMatchObject({
    code: 'position-lost',
    context: { failures: [{ code: 'position-lost', table: 'public.t' }] },
  });
  expect(problems(recreated)).toEqual([
    `public.t: replication slot ${name} begins after its position, so changes were missed`,
  ]);
});

test('a held table whose rows the user may not read at the moment stays published and keeps its claim', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'held');
  await client.query(`
    CREATE TABLE t (id int PRIMARY KEY);
    CREATE ROLE ${name} LOGIN REPLICATION;
    GRANT CREATE ON DATABASE ${name} TO ${name};
    GRANT CREATE ON SCHEMA public TO ${name};
    ALTER TABLE t OWNER TO ${name}`);
  const url = new URL(uri);
  url.username = name;
  const source = startSource(url.href, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const fromOffset = tables['public.t']!.start;
  await client.query(`REVOKE SELECT ON t FROM ${name}; INSERT INTO t VALUES (1)`);

  expect(problems(await rejection(source.assign({ tables: [{ table: 'public.t', fromOffset }] })))).toEqual([
    `user ${name} may not read public.t`,
  ]);
  await source.assign({ tables: [{ table: 'public.t', fromOffset, hold: true }] });
  await client.query(`GRANT SELECT ON t TO ${name}; INSERT INTO t VALUES (2)`);
  await source.assign({ tables: [{ table: 'public.t', fromOffset }] });
  const reader = await openChanges(source, 'public.t', fromOffset);

  expect((await reader.until(2)).map(({ after }) => after)).toEqual([{ id: '1' }, { id: '2' }]);
  await source.close();
  await client.query(`DROP OWNED BY ${name}; DROP ROLE ${name}`);
});

test('a table that was taken out of the publication meanwhile, or a publication made anew, is a lost position', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'lostpub');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const first = startSource(uri, name);
  const { tables } = await first.assign({ tables: [{ table: 'public.t' }] });
  await first.close();
  await client.query(`DROP PUBLICATION ${name}_pub`);
  await client.query('INSERT INTO t VALUES (1)');
  const source = startSource(uri, name);

  expect(
    await rejection(source.assign({ tables: [{ table: 'public.t', fromOffset: tables['public.t']!.start }] })),
  ).toMatchObject({
    code: 'position-lost',
  });

  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query('INSERT INTO t VALUES (2)');
  expect((await reader.until(1)).map(({ after }) => after)).toEqual([{ id: '2' }]);
});

test('a table added to a running slot begins after every transaction that wrote to it unpublished', async () => {
  const { uri, client, name, connect } = await freshDatabase(inject('postgres18'), 'added');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE late (id int PRIMARY KEY)');
  const source = startSource(uri, name);
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const writer = await connect();
  await writer.query('BEGIN; INSERT INTO late VALUES (1)');
  let assigned = false;

  const assigning = source
    .assign({ tables: [{ table: 'public.t', fromOffset: tables['public.t']!.start }, { table: 'public.late' }] })
    .finally(() => {
      assigned = true;
    });
  await expect
    .poll(async () => (await client.query("SELECT FROM pg_publication_tables WHERE tablename = 'late'")).rowCount)
    .toBe(1);
  expect(assigned).toBe(false);
  await writer.query('COMMIT');
  await assigning;

  const reader = await openChanges(source, 'public.late');
  await client.query('INSERT INTO late VALUES (2)');
  expect((await reader.until(1)).map(({ after }) => after)).toEqual([{ id: '2' }]);
});

test('where every table has lost its position nothing is made until one of them is copied anew', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'replaced');
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  const source = startSource(uri, name);

  await source.assign({ tables: [] });
  expect((await client.query('SELECT FROM pg_replication_slots WHERE slot_name = $1', [name])).rowCount).toBe(0);

  await source.assign({ tables: [{ table: 'public.t' }] });
  const made = [`replication slot ${name}`, `publication ${name}_pub`];
  expect(await source.teardown({ writer: 'w', tables: 'all', check: true })).toEqual({ items: made });
});

test('teardown names and removes the slot and the publication that the source made, and leaves others alone', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'teardown');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION theirs FOR TABLE t');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const made = [`replication slot ${name}`, `publication ${name}_pub`];

  expect(await source.teardown({ writer: 'w', tables: 'all', check: true })).toEqual({ items: made });
  expect(await source.teardown({ writer: 'w', tables: 'all', check: false })).toEqual({ items: made });
  expect(await source.teardown({ writer: 'w', tables: 'all', check: false })).toEqual({ items: [] });

  const { rows } = await client.query('SELECT pubname FROM pg_publication');
  expect(rows).toEqual([{ pubname: 'theirs' }]);
});

test('lists the tables that the user may read with their keys', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres18'), 'list');
  await client.query(
    'CREATE TABLE b (y int, x int, PRIMARY KEY (x, y)); CREATE TABLE a (id int); CREATE VIEW v AS SELECT 1',
  );
  const source = startSource(uri, name);

  expect(await source.listTables()).toEqual([
    { name: 'public.a', supportsSnapshot: true },
    { name: 'public.b', supportsSnapshot: true, primaryKey: ['x', 'y'] },
  ]);
});

test('everything works on the oldest server that the tests have', async () => {
  const { uri, client, name } = await freshDatabase(inject('postgres15'), 'older');
  await client.query('CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)');
  const source = startSource(uri, name);
  await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  const head = Buffer.from(await source.head(), 'base64');

  await client.query('INSERT INTO t VALUES (2)');

  expect((await reader.until(1)).map(({ after }) => after)).toEqual([{ id: '2' }]);
  const decoded = async () => Buffer.from((await source.progress(['public.t'])).tables['public.t']!.decoded, 'base64');
  await expect.poll(async () => Buffer.compare(await decoded(), head)).toBe(1);
  const read = await source.read({ table: 'public.t', mode: 'snapshot' });
  for await (const { batch } of read.open(new AbortController().signal)) expect(batch!.rows).toBe(2);
});

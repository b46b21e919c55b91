import { UrutauError } from '@urutau/sdk';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { ownPostgres, postgresUri } from '../../services/postgres.ts';
import { batchOf, type Change, ensureRequest, openSink, openTable, shapeOf, TableHost } from './sink-harness.ts';

const SHAPE = shapeOf({ id: 'int64', name: 'string' }, ['id']);

test('a commit that follows another checkpoint than the stored one writes nothing and is told the stored one', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const host = await openTable(sink, 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n } }]);
  const through = await host.cut();

  const commit = sink.commit(host.request(through, 'somebody else'));

  await expect(commit).rejects.toMatchObject({ code: 'fenced', context: { stored: host.previous, table: 'people' } });
  expect((await client.query('select * from people')).rows).toEqual([]);
});

test('of two hosts that both find no checkpoint only one writes', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const [one, two] = [openSink(uri), openSink(uri)];
  await one.ensure(ensureRequest('people', SHAPE), SHAPE);
  const hosts = [new TableHost(one, 'people', SHAPE, 'w'), new TableHost(two, 'people', SHAPE, 'w')];

  const outcomes = await Promise.allSettled(hosts.map((host) => host.open()));

  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const { reason } = outcomes.find((outcome) => outcome.status === 'rejected')!;
  expect((reason as UrutauError).code).toBe('fenced');
  expect((await client.query('select count(*)::int as n from urutau.checkpoints')).rows).toEqual([{ n: 1 }]);
});

test('two writers with checkpoints of their own write one target side by side', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sinks = [openSink(uri), openSink(uri)];
  await sinks[0]!.ensure(ensureRequest('people', SHAPE), SHAPE);
  const hosts = sinks.map((sink, index) => new TableHost(sink, 'people', SHAPE, `writer ${index}`));
  await Promise.all(hosts.map((host) => host.open()));

  await Promise.all(hosts.map((host, index) => host.write([{ op: 'c', after: { id: BigInt(index) } }])));
  await Promise.all(hosts.map((host) => host.commit()));

  expect((await client.query('select id::int from people order by id')).rows).toEqual([{ id: 0 }, { id: 1 }]);
  expect(await sinks[0]!.checkpoint('writer 1', ['people'])).toEqual({ people: { checkpoint: hosts[1]!.previous } });
});

test('a commit whose answer was lost is found by reading the checkpoint back', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const host = await openTable(sink, 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n } }]);
  const request = host.request(await host.cut());
  await sink.commit(request);

  const repeated = sink.commit({ ...request, through: 0 });

  await expect(repeated).rejects.toMatchObject({ code: 'fenced', context: { stored: request.checkpoint } });
  expect((await client.query('select id::int from people')).rows).toEqual([{ id: 1 }]);
});

test('a server that dies leaves the commit open as sink-unavailable, and a new stream goes on from its checkpoint', async () => {
  const server = await ownPostgres();
  const sink = openSink(postgresUri(server));
  const host = await openTable(sink, 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n } }]);
  await host.commit();
  await host.write([{ op: 'c', after: { id: 2n, name: 'x'.repeat(600_000) } }]);
  const through = await host.cut();

  await server.kill();
  await expect(sink.commit(host.request(through))).rejects.toMatchObject({ code: 'sink-unavailable' });
  await expect(host.write([{ op: 'c', after: { id: 3n } }])).rejects.toMatchObject({ code: 'sink-unavailable' });
  expect(await sink.checkpoint('test', ['people'])).toMatchObject({ people: { error: { code: 'sink-unavailable' } } });

  await server.restart();
  expect(await sink.checkpoint('test', ['people'])).toEqual({ people: { checkpoint: host.previous } });
  await host.open();
  await host.write([{ op: 'c', after: { id: 2n } }]);
  await host.commit();
});

test('a newer stream forgets what the older one had not committed, also what was on the server', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n, name: 'x'.repeat(600_000) } }]);

  await host.open();
  await host.write([{ op: 'c', after: { id: 2n } }]);
  await host.commit();

  expect((await client.query('select id::int from people')).rows).toEqual([{ id: 2 }]);
});

test('an idle commit moves the checkpoint alone', async () => {
  const { uri } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const host = await openTable(sink, 'people', SHAPE);

  await host.commit(0);

  expect(await sink.checkpoint('test', ['people'])).toEqual({ people: { checkpoint: host.previous } });
});

test('more tables than connections are written and committed side by side', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const names = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const hosts = await Promise.all(names.map((name) => openTable(sink, name, SHAPE)));
  const large = 'x'.repeat(300_000);

  await Promise.all(
    hosts.map(async (host) => {
      for (let id = 0n; id < 6n; id++) {
        await host.write([{ op: 'c', after: { id, name: large } }]);
        await host.commit();
      }
    }),
  );

  const counts = names.map((name) => `select count(*)::int as n from ${name}`).join(' union all ');
  expect((await client.query(counts)).rows).toEqual(names.map(() => ({ n: 6 })));
});

test('a table commits while the rows of others hold every connection that rows may hold', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const hosts = await Promise.all(Array.from({ length: 9 }, (_, index) => openTable(sink, `t${index}`, SHAPE)));
  const letters = await openTable(sink, 'letters', SHAPE);
  const large = 'x'.repeat(600_000);
  await Promise.all(hosts.map((host) => host.write([{ op: 'c', after: { id: 1n, name: large } }])));

  await letters.write([{ op: 'c', after: { id: 1n, name: 'small' } }]);
  await letters.commit();

  expect((await client.query('select id from letters')).rows).toEqual([{ id: '1' }]);
  await Promise.all(hosts.map((host) => host.commit()));
});

test.each([
  ['a text with a zero byte', 'string', { id: 2n, v: 'a\0b' }, 'v'],
  ['NULL where the target forbids it', 'string', { id: 2n }, 'v'],
  ['a text that is too long', 'string character varying(3)', { id: 2n, v: 'abcd' }, 'v'],
  ['an integer beyond smallint', 'int32 smallint', { id: 2n, v: 40_000 }, 'v'],
  ['a time before the type begins', 'timestamp', { id: 2n, v: -(2n ** 63n) }, 'v'],
  ['a text that is no number', 'string numeric', { id: 2n, v: 'abc' }, undefined],
] as const)(
  '%s is refused with the key and the place of its row, and nothing of the commit is written',
  async (_, type, bad, column) => {
    const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
    const shape = shapeOf({ id: 'int64', v: type }, ['id']);
    const sink = openSink(uri);
    const host = await openTable(sink, 'strict', shape, { options: { source: 'postgres' } });
    await client.query('alter table strict alter column v set not null');
    const good: Change = {
      op: 'c',
      after: { id: 1n, v: type.startsWith('string') ? '1' : type.startsWith('int') ? 1 : 1n },
    };
    await host.write([good]);

    const failed = host.write([good, { op: 'c', after: bad }, good]).then(() => host.commit());

    const error: UrutauError = await failed.then(
      () => expect.fail('it was taken'),
      (reason) => reason,
    );
    expect(error).toBeInstanceOf(UrutauError);
    expect({ code: error.code, ...error.context }).toEqual({
      code: 'row-refused',
      table: 'strict',
      stream: 1,
      seq: 2,
      row: 1,
      key: '{"id": 2}',
      ...(column ? { column } : {}),
    });
    expect(error.message).not.toMatch(/abc|40000/);
    expect((await client.query('select * from strict')).rows).toEqual([]);
    expect(await sink.checkpoint('test', ['strict'])).toEqual({ strict: { checkpoint: host.previous } });
  },
);

test('a row that breaks a constraint of the target is found among a hundred thousand', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  await client.query('alter table people add unique (name)');
  const changes = (from: number): Change[] => {
    return Array.from({ length: 10_000 }, (_, index) => ({
      op: 'c',
      after: { id: BigInt(from + index), name: `name ${from + index === 77_777 ? 5 : from + index}` },
    }));
  };
  for (let from = 0; from < 100_000; from += 10_000) await host.write(changes(from));

  const commit = host.commit();

  await expect(commit).rejects.toMatchObject({
    code: 'row-refused',
    context: { seq: 8, row: 7_777, key: '{"id": 77777}' },
  });
  await expect(commit).rejects.toThrow(/people_name_key/);
});

test('a target that was dropped is table-not-found', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  const host = await openTable(sink, 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n } }]);
  await client.query('drop table people');

  await expect(host.commit()).rejects.toMatchObject({ code: 'table-not-found', context: { table: 'people' } });
  await expect(sink.openWriter({ mode: 'write', table: 'people', stream: 2 }, SHAPE)).rejects.toMatchObject({
    code: 'table-not-found',
  });
});

test('a host that keeps positions itself gets its rows made durable by flush', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  await client.query('create table people (id bigint primary key, name text)');
  const sink = openSink(uri);
  const writer = await sink.openWriter({ mode: 'write', table: 'people' }, SHAPE);
  await writer.write(batchOf(SHAPE, [{ op: 'c', after: { id: 1n } }], { seq: 1, rows: -1 }), { seq: 1, rows: -1 });
  await writer.end();

  await sink.flush();

  expect((await client.query('select id::int from people')).rows).toEqual([{ id: 1 }]);
  expect((await client.query("select to_regclass('urutau.checkpoints') as t")).rows).toEqual([{ t: null }]);
});

test('teardown names and removes the checkpoints of its writer alone, and the table with the last one', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const sink = openSink(uri);
  await openTable(sink, 'a', SHAPE);
  await openTable(sink, 'b', SHAPE);
  const other = new TableHost(sink, 'a', SHAPE, 'other');
  await other.open();
  const count = async () => (await client.query('select count(*)::int as n from urutau.checkpoints')).rows[0].n;

  expect(await sink.teardown({ writer: 'test', tables: 'all', check: true })).toEqual({
    items: [
      'checkpoint of public.a (writer test) in urutau.checkpoints',
      'checkpoint of public.b (writer test) in urutau.checkpoints',
    ],
  });
  expect(await count()).toBe(3);
  await sink.teardown({ writer: 'test', tables: ['b'], check: false });
  expect(await count()).toBe(2);
  await sink.teardown({ writer: 'test', tables: 'all', check: false });
  expect(await count()).toBe(1);
  await sink.teardown({ writer: 'other', tables: 'all', check: false });

  expect((await client.query("select to_regnamespace('urutau') as s, to_regclass('a') as a")).rows).toEqual([
    { s: null, a: 'a' },
  ]);
});

test('a commit of a million rows holds a small part of them in memory', { timeout: 300_000 }, async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  const batchRows = 10_000;
  const before = process.memoryUsage().rss;
  let most = 0;

  for (let from = 0; from < 1_000_000; from += batchRows) {
    await host.write(
      Array.from({ length: batchRows }, (_, index) => ({
        op: 'c',
        after: { id: BigInt(from + index), name: `name of the row ${from + index}` },
      })),
    );
    most = Math.max(most, process.memoryUsage().rss);
  }
  await host.commit();

  expect((await client.query('select count(*)::int as n from people')).rows).toEqual([{ n: 1_000_000 }]);
  expect((most - before) / 1024 / 1024).toBeLessThan(200);
});

test('a checkpoint is not stored for rows of a stream that is not there', async () => {
  const { uri } = await freshDatabase(inject('postgres18'), 'sink');
  const host = await openTable(openSink(uri), 'people', SHAPE);
  await host.write([{ op: 'c', after: { id: 1n } }]);
  const through = await host.cut();
  const other = openSink(uri);

  await expect(other.commit(host.request(through))).rejects.toMatchObject({ code: 'stream-lost' });
  expect(await other.checkpoint('test', ['people'])).toEqual({ people: { checkpoint: host.previous } });
});

test('of rows that are refused for different reasons the one that is named is named with its own', async () => {
  const { uri, client } = await freshDatabase(inject('postgres15'), 'sink');
  const shape = shapeOf({ id: 'int64', name: 'string', amount: 'int32' }, ['id']);
  // A merge goes by key, and so meets the later change first.
  await client.query(`create table people (id bigint primary key, name text not null, amount int,
    constraint small check (amount < 10))`);
  const host = await openTable(openSink(uri), 'people', shape);
  await host.write([
    { op: 'c', after: { id: 2n, name: 'x', amount: 50 } },
    { op: 'u', after: { id: 1n, name: null, amount: 1 } },
  ]);

  const { message, context } = await host.commit().catch((error) => error);
  expect(message).toBe(
    'public.people refuses the row with key {"id": 2}: a check constraint fails (SQLSTATE 23514, constraint small)',
  );
  expect(context).toMatchObject({ seq: 1, row: 0, more: [[1, 1]] });
  expect(context.column).toBeUndefined();
});

test('a commit that is refused names all rows that a constraint forbids, whatever the columns are called', async () => {
  const { uri, client } = await freshDatabase(inject('postgres15'), 'sink');
  const shape = shapeOf({ r: 'int64', refused: 'int32', o: 'string' }, ['r']);
  await client.query('create table people (r bigint primary key, refused int check (refused < 10), o varchar(3))');
  const host = await openTable(openSink(uri), 'people', shape);
  const rows = [1, 50, 2, 60, 3].map((refused, r) => ({ op: 'c', after: { r: BigInt(r), refused, o: 'x' } }) as const);
  await host.write([...rows, { op: 'u', after: { r: 1n, refused: 80, o: 'x' } }]);
  await host.write([{ op: 'c', after: { r: 9n, refused: 70, o: 'y' } }]);

  await expect(host.commit()).rejects.toMatchObject({
    code: 'row-refused',
    context: {
      seq: 1,
      row: 3,
      key: '{"r": 3}',
      more: [
        [1, 5],
        [2, 0],
      ],
    },
  });
});

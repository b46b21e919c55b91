import { rmSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { control } from '../../../host/control/client.ts';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, waitFor } from './host-process.ts';

interface TableBlock {
  source: string;
  target: string;
  [field: string]: unknown;
}

async function databases(setUp: string) {
  const source = await freshDatabase(inject('postgres18'), 'recovery_src');
  const sink = await freshDatabase(inject('postgres18'), 'recovery_dst');
  await source.client.query(setUp);
  const hostFor = (tables: TableBlock[]) =>
    new HostProcess({
      pipeline: {
        pipeline: 'recovery',
        source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
        sink: { type: 'postgres', uri: sink.uri, flush: { interval: '50ms' } },
        tables,
      },
    });
  const caughtUp = async (host: HostProcess) =>
    expect(await host.start('--until-caught-up').exitCode(), host.output.slice(-4000)).toBe(0);
  return { source: source.client, sink: sink.client, hostFor, caughtUp, slot: `s_${source.name}` };
}

const ORDERS =
  'create table orders (id int primary key, note text); insert into orders select i, i::text from generate_series(1, 500) i;';
const upsert = [{ source: 'public.orders', target: 'orders' }];

test('without anything that the host wrote it resumes from the destination alone, with no second snapshot', async () => {
  const { source, sink, hostFor, caughtUp } = await databases(ORDERS);
  const host = hostFor(upsert);
  await caughtUp(host);
  await source.query(`insert into orders values (1001, 'late'); delete from orders where id = 7`);
  // A snapshot would bring this row back; the changes alone do not.
  await sink.query('delete from orders where id = 8');
  rmSync(host.stateDir, { recursive: true });

  await caughtUp(host);

  const { rows } = await sink.query(
    'select count(*)::int as n, bool_or(id in (7, 8)) as gone, bool_or(id = 1001) as late from orders',
  );
  expect(rows).toEqual([{ n: 499, gone: false, late: true }]);
});

test('a slot that was dropped and made anew while the host was down is found, and resync mends the table', async () => {
  const { source, sink, hostFor, caughtUp, slot } = await databases(ORDERS);
  const host = hostFor(upsert);
  await caughtUp(host);
  await waitFor('the slot being free', 10_000, async () => {
    const { rows } = await source.query('select active from pg_replication_slots where slot_name = $1', [slot]);
    return rows[0].active ? null : true;
  });
  await source.query('select pg_drop_replication_slot($1)', [slot]);
  await source.query(`insert into orders values (2000, 'in the gap'); delete from orders where id = 1`);
  await source.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [slot]);

  expect(await host.start('--until-caught-up').exitCode()).toBe(3);
  expect(host.output).toContain('position-lost');

  host.start();
  await host.until('the table pausing', ({ tables }) => tables[0]!.reason?.code === 'position-lost');
  await control(host.stateDir).resync('public.orders');
  await waitFor(
    'the gap being closed',
    30_000,
    async () => {
      const { rows } = await sink.query('select count(*)::int as n, bool_or(id = 1) as gone from orders');
      return rows[0].n === 500 && rows[0].gone === false ? true : null;
    },
    () => host.output.slice(-4000),
  );
}, 120_000);

test('resync empties the target first, so that a row which is gone at the source does not survive', async () => {
  const { source, sink, hostFor } = await databases(ORDERS);
  const host = hostFor(upsert).start();
  await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');
  await sink.query(`insert into orders values (-1, 'foreign')`);

  await control(host.stateDir).resync('public.orders');
  await source.query(`insert into orders values (501, 'after')`);

  await waitFor(
    'the same rows',
    30_000,
    async () => {
      const { rows } = await sink.query('select count(*)::int as n, min(id) as least from orders');
      return rows[0].n === 501 && rows[0].least === 1 ? true : null;
    },
    () => host.output.slice(-4000),
  );
}, 120_000);

test('a target that holds rows and no checkpoint is refused, with the remedy', async () => {
  const { sink, hostFor } = await databases(ORDERS);
  await sink.query(`create table orders (id int primary key, note text); insert into orders values (9, 'mine')`);
  const host = hostFor(upsert);

  expect(await host.start('--until-caught-up').exitCode()).toBe(3);

  expect(host.output).toContain('holds rows, and no checkpoint says where they come from');
  expect((await sink.query('select * from orders')).rows).toEqual([{ id: 9, note: 'mine' }]);
});

test('a truncate with onTruncate apply empties the target in order with the rows around it', async () => {
  const { source, sink, hostFor, caughtUp } = await databases(ORDERS);
  const host = hostFor([{ ...upsert[0]!, onTruncate: 'apply' }]);
  await caughtUp(host);

  await source.query(`insert into orders values (600, 'before')`);
  await source.query('truncate orders');
  await source.query(`insert into orders values (601, 'after')`);
  await caughtUp(host);

  expect((await sink.query('select * from orders')).rows).toEqual([{ id: 601, note: 'after' }]);
});

const BIG = `repeat(md5('big'), 4000)`;

test('a big value survives an update before its chunk, a key change, and both in one transaction', async () => {
  const { source, sink, hostFor, caughtUp } = await databases(`
    create table docs (id int primary key, rev int, big text);
    alter table docs alter big set storage external;
    insert into docs select i, 0, ${BIG} || i from generate_series(1, 300) i;
  `);
  const host = hostFor([{ source: 'public.docs', target: 'docs', chunkRows: 10 }]).start();
  await host.until('the snapshot', ({ tables }) => tables[0]!.state === 'snapshotting');
  for (let id = 300; id > 200; id--) {
    await source.query('update docs set rev = rev + 1 where id = $1', [id]);
    await source.query('update docs set id = id + 1000 where id = $1', [id - 100]);
    await source.query('begin');
    await source.query('update docs set rev = rev + 1 where id = $1', [id - 200]);
    await source.query('update docs set id = id + 2000 where id = $1', [id - 200]);
    await source.query('commit');
  }
  await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');
  await source.query('update docs set rev = rev + 1 where id % 2 = 0');
  await source.query('update docs set id = -id where id % 3 = 0');
  await host.stop();
  await caughtUp(host);

  const content = 'select id, rev, length(big) as bytes, md5(big) as hash from docs order by id';
  const theirs = (await source.query(content)).rows.map((row) => JSON.stringify(row));
  const ours = (await sink.query(content)).rows.map((row) => JSON.stringify(row));
  expect({
    extra: ours.filter((row) => !theirs.includes(row)),
    missing: theirs.filter((row) => !ours.includes(row)),
  }).toEqual({
    extra: [],
    missing: [],
  });
}, 120_000);

test('an append table under the default replica identity is refused when its big values could not be told', async () => {
  const { hostFor } = await databases(
    'create table docs (id int primary key, big text); insert into docs values (1, 1)',
  );
  const host = hostFor([{ source: 'public.docs', target: 'docs', writeMode: 'append' }]);

  expect(await host.start('--until-caught-up').exitCode()).toBe(3);

  expect(host.output).toMatch(/replica identity full/i);
});

test('a key that the changes do not hold is refused, for a change of it would leave the old row behind', async () => {
  const { source, hostFor, caughtUp } = await databases(
    `create table docs (id int primary key, code text not null unique); insert into docs values (1, 'a')`,
  );
  const host = hostFor([{ source: 'public.docs', target: 'docs', primaryKey: ['code'] }]);

  expect(await host.start('--until-caught-up').exitCode()).toBe(3);
  expect(host.output).toContain('do not hold the old value of code');

  await source.query('alter table docs replica identity full');
  await caughtUp(host);
}, 60_000);

test('an idle table beside a busy database does not hold the log back', async () => {
  const { source, hostFor, slot } = await databases(`${ORDERS} create table busy (pad text)`);
  const host = hostFor(upsert).start();
  await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');

  await source.query(`insert into busy select repeat('x', 1000) from generate_series(1, 120000)`);
  const { rows: written } = await source.query('select pg_current_wal_lsn()::text as lsn');

  await waitFor(
    'the slot moving past what the other table wrote',
    60_000,
    async () => {
      const { rows } = await source.query(
        'select confirmed_flush_lsn >= $2::pg_lsn - 67108864 as moved from pg_replication_slots where slot_name = $1',
        [slot, written[0].lsn],
      );
      return rows[0].moved ? true : null;
    },
    () => host.output.slice(-2000),
  );
}, 120_000);

test('two tables in append and upsert are streamed side by side, each change once', async () => {
  const { source, sink, hostFor, caughtUp } = await databases(
    `${ORDERS} create table log (id int primary key, note int); insert into log values (1, 1)`,
  );
  const host = hostFor([...upsert, { source: 'public.log', target: 'log', writeMode: 'append' }]);
  await caughtUp(host);
  await source.query(
    'insert into log values (2, 2); update log set note = 3 where id = 2; delete from log where id = 1',
  );
  await caughtUp(host);

  const { rows } = await sink.query(
    'select _urutau_op as op, id, note, _urutau_phase as phase from log order by _urutau_position, id',
  );
  expect(rows).toEqual([
    { op: 'c', id: 1, note: 1, phase: 'snapshot' },
    { op: 'c', id: 2, note: 2, phase: 'stream' },
    { op: 'u', id: 2, note: 3, phase: 'stream' },
    { op: 'd', id: 1, note: null, phase: 'stream' },
  ]);
}, 60_000);

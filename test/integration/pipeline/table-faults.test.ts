import { expect, inject, test } from 'vitest';
import { control } from '../../../host/control/client.ts';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, waitFor } from './host-process.ts';

/** Two tables of a shop, streaming; the test breaks `orders`, and `customers` must go on. */
async function shop(options: Record<string, unknown> = {}) {
  const source = await freshDatabase(inject('postgres18'), 'faults_src');
  const sink = await freshDatabase(inject('postgres18'), 'faults_dst');
  await source.client.query(`
    create table orders (id int primary key, amount int, note text);
    create table customers (id int primary key, name text);
    insert into orders select i, i, 'n' from generate_series(1, 100) i;
    insert into customers select i, 'c' from generate_series(1, 100) i;
  `);
  const host = new HostProcess({
    pipeline: {
      pipeline: 'faults',
      source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
      sink: { type: 'postgres', uri: sink.uri, flush: { interval: '50ms' } },
      tables: ['orders', 'customers'].map((table) => ({ source: `public.${table}`, target: table, ...options })),
    },
  });
  host.start();
  await host.until('streaming', ({ tables }) => tables.every(({ state }) => state === 'streaming'));
  const count = async (table: string) =>
    Number((await sink.client.query(`select count(*) from ${table}`)).rows[0].count);
  const othersGoOn = async () => {
    const before = await count('customers');
    await source.client.query(`insert into customers select max(id) + 1, 'new' from customers`);
    await waitFor(
      'the other table going on',
      20_000,
      async () => ((await count('customers')) > before ? true : null),
      () => host.output,
    );
  };
  const paused = () =>
    host
      .until('orders pausing', ({ tables }) => tables[0]!.state === 'paused')
      .then(({ tables }) => tables[0]!.reason!);
  const resumed = async () => {
    await control(host.stateDir).resume('public.orders');
    await host.until('orders streaming again', ({ tables }) => tables[0]!.state === 'streaming');
  };
  return { source, sink, host, count, othersGoOn, paused, resumed };
}

test('a row that the target refuses pauses its table alone, with its key, and resume goes on with it', async () => {
  const { source, sink, host, othersGoOn, paused, resumed } = await shop();
  await sink.client.query('alter table orders add constraint small check (amount < 1000)');

  await source.client.query(`insert into orders values (501, 1, 'fine'), (502, 5000, 'too much'), (503, 3, 'fine')`);
  const reason = await paused();
  expect(reason).toMatchObject({ code: 'row-refused', key: expect.stringContaining('502') });
  expect(host.output).toContain('502');
  await othersGoOn();

  await sink.client.query('alter table orders drop constraint small');
  await resumed();
  await waitFor('the refused row', 20_000, async () => {
    const { rows } = await sink.client.query('select id from orders where id > 500 order by id');
    return rows.length === 3 ? true : null;
  });
}, 120_000);

test('with onPoison stop a refused row ends the run, which says which row it was', async () => {
  const { source, sink, host } = await shop({ onPoison: 'stop' });
  await sink.client.query('alter table orders add constraint small check (amount < 1000)');

  await source.client.query(`insert into orders values (502, 5000, 'too much')`);

  expect(await host.exitCode()).toBe(1);
  expect(host.output).toContain('502');
}, 120_000);

test('a target that was dropped pauses its table alone, and resume goes on when it is there again', async () => {
  const { source, sink, othersGoOn, paused, resumed, count } = await shop();
  await sink.client.query('alter table orders rename to away');

  await source.client.query(`insert into orders values (501, 1, 'new')`);
  await paused();
  await othersGoOn();

  await sink.client.query('alter table away rename to orders');
  await resumed();
  await waitFor('the new row', 20_000, async () => ((await count('orders')) === 101 ? true : null));
}, 120_000);

test('a table that is dropped at the source pauses alone', async () => {
  const { source, othersGoOn, paused } = await shop();

  await source.client.query('drop table orders');

  expect(await paused()).toMatchObject({ code: 'table-not-found' });
  await othersGoOn();
}, 120_000);

test('a column whose type changes pauses its table alone, and resume goes on when the target fits', async () => {
  const { source, sink, host, othersGoOn, paused, resumed } = await shop();

  await source.client.query(`
    insert into orders values (501, 1, 'before');
    alter table orders alter amount type bigint;
    insert into orders values (502, 5000000000, 'after');
  `);
  expect(await paused()).toMatchObject({ code: 'schema-changed' });
  expect((await sink.client.query('select note from orders where id = 501')).rows).toEqual([{ note: 'before' }]);
  await othersGoOn();

  await sink.client.query('alter table orders alter amount type bigint');
  await resumed();
  await waitFor(
    'the row of the new type',
    20_000,
    async () => {
      const { rows } = await sink.client.query('select amount::text from orders where id = 502');
      return rows[0]?.amount === '5000000000' ? true : null;
    },
    () => host.output,
  );
}, 120_000);

test('a truncate pauses its table by default, and is carried out in order where the file says apply', async () => {
  const { source, paused, othersGoOn } = await shop();

  await source.client.query('truncate orders');

  expect((await paused()).message).toContain('truncated');
  await othersGoOn();
}, 120_000);

import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { control } from '../../../host/control/client.ts';
import { figure } from '../../figures.ts';
import type { FreshDatabase } from '../../services/databases.ts';
import { hostCommand, startHost } from '../cli/host-command.ts';
import { type Shop, shop } from '../cli/shop.ts';
import { waitFor } from '../pipeline/host-process.ts';
import { verify } from './verify-command.ts';

/** A host that streams both tables of a shop. */
async function streaming({ env, pipelineFile }: Shop, sink?: string, tables?: string) {
  const file = pipelineFile(sink, tables);
  const host = startHost(['run', '-f', file], env);
  await host.until('table is streaming table=public.orders');
  await host.until('table is streaming table=public.items');
  return { file, host };
}

/** Changes rows without a pause until it is stopped; resolves then with the number of statements. */
async function traffic(database: FreshDatabase, statement: (n: number) => string): Promise<() => Promise<number>> {
  const client = await database.connect();
  let stopped = false;
  let done = 0;
  const running = (async () => {
    while (!stopped) await client.query(statement(done++));
  })();
  onTestFinished(async () => {
    stopped = true;
    await running.catch(() => {});
  });
  return async () => {
    stopped = true;
    await running;
    return done;
  };
}

test('planted rows are each named by kind, key and columns while the host streams', async () => {
  const made = await shop();
  const { env, source, copy } = made;
  const { file } = await streaming(made, 'type: postgres, flush: { interval: 1h }');

  expect(await verify(file, env)).toMatchObject({
    code: 0,
    stderr: '',
    tables: [
      { source: 'public.orders', result: 'equal', comparison: { rows: { source: 1000, destination: 1000 } } },
      { source: 'public.items', result: 'equal' },
    ],
  });

  // What is only on its way is no difference, though the host would keep it for an hour by itself.
  await source.client.query("update items set name = 'on its way' where order_id = 9");
  await copy.client.query(`
    delete from orders where id in (5, 6);
    insert into orders values (5000, 'planted', 1);
    update orders set status = 'planted', amount = amount + 1 where id = 7;
    update items set name = null where order_id = 8`);

  const { code, tables } = await verify(file, env);
  expect(code).toBe(1);
  expect(tables[0]).toMatchObject({
    result: 'different',
    comparison: { counts: { missing: 2, extra: 1, different: 1, unsettled: 0 }, left: null },
  });
  expect([...tables[0]!.comparison!.found].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual([
    { kind: 'missing', key: 'id=5', columns: [] },
    { kind: 'extra', key: 'id=5000', columns: [] },
    { kind: 'missing', key: 'id=6', columns: [] },
    { kind: 'different', key: 'id=7', columns: ['status', 'amount'] },
  ]);
  expect(tables[1]!.comparison!.found).toEqual([{ kind: 'different', key: 'order_id=8, line=1', columns: ['name'] }]);

  const shown = await hostCommand(['verify', '-f', file, '--tables', 'orders', '--show', '1'], env);
  expect(shown.code).toBe(1);
  expect(shown.stdout).toContain(
    'public.orders -> public.orders: different: 2 missing, 1 extra, 1 different (1,000 rows at the source, 999 in the destination)\n',
  );
  expect(shown.stdout).toMatch(/ {2}missing {5}id=[56]\n {2}and 1 more missing\n/);
  expect(shown.stdout).toContain('  different   id=7: status, amount\n');
});

test('while rows change all the time equal tables are equal, and nothing of the command is left', async () => {
  const made = await shop();
  const { env, source, copy } = made;
  await source.client.query("insert into orders select n, 'open', n from generate_series(1001, 20000) n");
  const { file } = await streaming(made);
  const before = await standing(source);
  const stop = await traffic(source, (n) => {
    const id = 1 + ((n * 7919) % 20_000);
    if (n % 10 === 8) return `delete from orders where id = ${id}`;
    if (n % 10 === 9) return `insert into orders values (${20_001 + n}, 'new', ${n})`;
    return `update orders set amount = amount + 1, status = 'n${n}' where id = ${id}`;
  });

  const { code, tables, stderr } = await verify(file, env);

  const changes = await stop();
  expect(changes).toBeGreaterThan(100);
  figure('verify of living tables', `equal, while the source changed ${changes} times`);
  expect(tables.map(({ source, result }) => [source, result])).toEqual([
    ['public.orders', 'equal'],
    ['public.items', 'equal'],
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(await standing(source)).toEqual(before);
  expect(await standing(copy)).toMatchObject({ slots: [] });
});

test('rows that are rewritten, come and go, or go back and forth at every moment are never taken for differences', async () => {
  const made = await shop();
  const { env, source } = made;
  const { file } = await streaming(made, 'type: postgres, flush: { interval: 50ms }');
  await traffic(source, (n) => `update orders set amount = ${n} where id = 1`);
  await traffic(source, (n) => `update orders set status = '${n % 2 === 0 ? 'open' : 'shut'}' where id = 2`);
  await traffic(source, (n) =>
    n % 2 === 0 ? "insert into orders values (5000, 'x', 1)" : 'delete from orders where id = 5000',
  );

  const { code, tables } = await verify(file, env, '--tables', 'orders');

  const { counts } = tables[0]!.comparison!;
  expect(counts).toMatchObject({ missing: 0, extra: 0, different: 0 });
  expect(counts.unsettled).toBeLessThanOrEqual(3);
  expect(code).toBe(counts.unsettled === 0 ? 0 : 3);
});

test('a table that is paused, has no copy yet, or is written in append is not compared, and the sentence says why', async () => {
  const made = await shop();
  const { env, source, pipelineFile } = made;
  await source.client.query('create table later (id int primary key)');
  const { file, host } = await streaming(made);
  expect((await hostCommand(['table', 'pause', '-f', file, 'orders'], env)).code).toBe(0);
  expect((await verify(file, env, '--tables', 'orders')).tables[0]).toMatchObject({ result: 'equal' });

  await source.client.query('delete from orders where id = 1');
  const paused = await hostCommand(['verify', '-f', file, '--tables', 'orders'], env);
  expect(paused.code).toBe(3);
  expect(paused.stdout).toBe(
    'public.orders -> public.orders: not compared: public.orders is paused (paused by hand), and differs from the source as of now\n' +
      '  remedy: urutau-host table resume public.orders\n',
  );

  host.child.kill('SIGINT');
  await once(host.child, 'exit');
  // Nobody moves it now, so what differs may be on its way.
  const stopped = await verify(file, env, '--timeout', '1s');
  expect(stopped.code).toBe(3);
  expect(stopped.tables[0]!.failure).toMatchObject({
    problem: expect.stringContaining('has not moved for 1 s, and no host answers in the state folder'),
    remedy: expect.stringContaining('Start the host'),
  });
  expect(stopped.tables[1]).toMatchObject({ result: 'equal' });

  pipelineFile(
    'type: postgres',
    '  - { source: public.later, target: later }\n  - { source: public.items, target: log, writeMode: append }\n',
  );
  const others = await verify(file, env);
  expect(others.tables.map(({ failure }) => failure!.problem)).toEqual([
    'the destination has no checkpoint of public.later: this pipeline has not copied it yet',
    'public.items is written in append: public.log holds one row for each change, and not the state that the source has',
  ]);
  expect(others.code).toBe(3);
});

test('a table that is copied again and again while it is compared is not taken for one that lost rows', async () => {
  const made = await shop();
  const { env, source, copy, folder } = made;
  await source.client.query("insert into orders select n, 'open', n from generate_series(1001, 50000) n");
  const { file } = await streaming(made);
  await copy.client.query('delete from orders where id = 5');
  const host = control(join(folder, '.urutau/shop'));
  let over = false;
  const resyncing = (async () => {
    for (let n = 0; !over; n++) {
      await host.resync('public.orders');
      // Sometimes in the middle of a copy, sometimes after it.
      await waitFor('the table to stream', 60_000, async () => {
        const { tables } = await host.status();
        return over || n % 2 === 0 || tables[0]!.state === 'streaming' ? true : null;
      });
    }
  })();

  const results = [];
  for (let n = 0; n < 2; n++) results.push(...(await verify(file, env, '--tables', 'orders')).tables);
  over = true;
  await resyncing;

  for (const { result, comparison } of results) {
    expect(['equal', 'not compared', 'different']).toContain(result);
    expect(comparison?.found.map(({ key }) => key) ?? []).toEqual(result === 'different' ? ['id=5'] : []);
  }
});

test('extra rows of a table whose truncates are ignored come with the reason', async () => {
  const made = await shop();
  const { env, source } = made;
  const tables =
    '  - { source: public.orders, target: orders, onTruncate: ignore }\n  - { source: public.items, target: items }\n';
  const { file } = await streaming(made, 'type: postgres', tables);
  await source.client.query("truncate orders; insert into orders values (1, 'again', 1)");

  const { code, stdout } = await hostCommand(['verify', '-f', file, '--tables', 'orders', '--show', '0'], env);

  expect(code).toBe(1);
  expect(stdout).toContain('different: 999 extra (1 row at the source, 1,000 in the destination)');
  expect(stdout).toContain('  note: onTruncate is ignore: rows that a truncate of the source removed stay');
});

test('rows that were there before a pipeline without a first copy are missing, with the reason', async () => {
  const { env, source, copy, pipelineFile } = await shop();
  const file = pipelineFile();
  writeFileSync(file, readFileSync(file, 'utf8').replace('kind: postgres,', 'kind: postgres, snapshotMode: none,'));
  const host = startHost(['run', '-f', file], env);
  await host.until('table is streaming table=public.orders');
  await source.client.query("update orders set status = 'new' where id = 1");
  await waitFor('the update', 60_000, async () =>
    (await copy.client.query('select from orders')).rowCount === 1 ? true : null,
  );

  const { code, tables } = await verify(file, env, '--tables', 'orders');

  expect(code).toBe(1);
  expect(tables[0]).toMatchObject({
    comparison: { counts: { missing: 999, different: 0 } },
    note: expect.stringContaining('snapshotMode is none'),
  });
});

test('what was found before it is interrupted is told, by the exit code too', async () => {
  const made = await shop();
  const { env, source, copy } = made;
  const { file } = await streaming(made, 'type: postgres, flush: { interval: 1h }');
  await copy.client.query('delete from orders where id = 5');
  // Differ at first sight, and so take a second look, which is cut short.
  await source.client.query("update items set name = 'on its way'");

  const command = startHost(['verify', '-f', file], env);
  await waitFor('the first table', 60_000, async () => (command.written.stdout.includes('\n') ? true : null));
  command.child.kill('SIGINT');

  const { code, stdout, stderr } = await command.ended;
  expect(stdout).toMatch(/^public.orders -> public.orders: different: 1 missing .*\n {2}missing {5}id=5\n$/);
  expect([code, stderr]).toEqual([1, expect.stringContaining('error: interrupted')]);
});

test('a destination that cannot be read back is refused before anything is started', async () => {
  const { env, pipelineFile } = await shop();

  const { code, stdout, stderr } = await hostCommand(['verify', '-f', pipelineFile('type: stdout')], env);

  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('what the sink stdout wrote cannot be read back: its driver has no reader');
});

/** What stands in a database for good. */
async function standing({ uri }: FreshDatabase) {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  try {
    const names = async (sql: string) => (await client.query({ text: sql, rowMode: 'array' })).rows.flat();
    return {
      slots: await names('select slot_name from pg_replication_slots where database = current_database() order by 1'),
      publications: await names('select pubname from pg_publication order by 1'),
      tables: await names(
        "select oid::regclass::text from pg_class where relkind = 'r' and relnamespace::regnamespace::text !~ '^(pg_|information)' order by 1",
      ),
    };
  } finally {
    await client.end();
  }
}

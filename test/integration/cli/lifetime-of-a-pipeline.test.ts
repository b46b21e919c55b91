import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hostCommand } from './host-command.ts';
import { shop } from './shop.ts';

test('init, validate, run, table status and teardown lead from an address to a copy, and leave nothing behind', async () => {
  const { source, copy, env, folder } = await shop();
  await source.client.query('create table notes (text text)');
  const file = join(folder, 'shop.yaml');

  const init = await hostCommand(['init', '--to', 'postgres', '--output', file], env);
  expect(init).toMatchObject({ code: 0, stdout: '' });
  expect(init.stderr).toContain('2 tables of 3 can be copied as they are');
  expect(readFileSync(file, 'utf8')).toMatch(/^# yaml-language-server: \$schema=\S*pipeline\.schema\.json\n/);

  expect(await hostCommand(['validate', '-f', file], env)).toMatchObject({ code: 0, stderr: '' });
  const connected = await hostCommand(['validate', '-f', file, '--connect'], env);
  expect(connected).toMatchObject({ code: 0, stderr: '' });
  expect(connected.stdout).toContain('public.orders -> public.orders: run would: ');
  const slots = `select count(*)::int from pg_replication_slots where database = '${source.name}'`;
  expect((await source.client.query(slots)).rows).toEqual([{ count: 0 }]);

  const summaryFile = join(folder, 'summary.json');
  const run = await hostCommand(['run', '-f', file, '--until-caught-up', '--summary', summaryFile], env);
  expect(run).toMatchObject({ code: 0, stdout: '' });
  expect(run.stderr).toContain('public.orders -> public.orders: snapshot of about 1000 rows, then stream\n');
  expect(run.stderr).toContain('public.orders -> public.orders: done; 1,000 rows copied');
  const same = 'select * from orders order by id';
  expect((await copy.client.query(same)).rows).toEqual((await source.client.query(same)).rows);
  expect((await copy.client.query('select count(*)::int from items')).rows).toEqual([{ count: 500 }]);
  expect(statSync(join(folder, '.urutau/shop', '..')).mode & 0o777).toBe(0o700);
  const process = { cpuSeconds: expect.any(Number), peakMemoryBytes: expect.any(Number) };
  const none = { inserts: 0, updates: 0, deletes: 0, commits: expect.any(Number) };
  expect(JSON.parse(readFileSync(summaryFile, 'utf8'))).toEqual({
    rows: 1500,
    bytes: expect.any(Number),
    seconds: expect.any(Number),
    tables: { 'public.items': { snapshotRows: 500, ...none }, 'public.orders': { snapshotRows: 1000, ...none } },
    processes: [
      { role: 'host', ...process },
      { role: 'source', ...process },
      { role: 'sink', ...process },
    ],
  });

  const status = await hostCommand(['table', 'status', '-f', file, '--output', 'json'], env);
  expect(JSON.parse(status.stdout)).toMatchObject({
    host: null,
    tables: [
      { source: 'public.items', state: 'stopped', snapshot: 'done' },
      { source: 'public.orders', state: 'stopped', snapshot: 'done' },
    ],
  });

  const shown = await hostCommand(['teardown', '-f', file], env);
  expect(shown).toMatchObject({ code: 2 });
  expect(shown.stdout).toMatch(/source {2}replication slot/);
  expect(shown.stdout).toContain('sink    checkpoint of public.orders');
  expect(shown.stderr).toContain('nothing was dropped');
  expect((await source.client.query(slots)).rows).toEqual([{ count: 1 }]);

  expect(await hostCommand(['teardown', '-f', file, '--yes'], env)).toMatchObject({ code: 0, stderr: '' });
  expect((await source.client.query(slots)).rows).toEqual([{ count: 0 }]);
  expect((await copy.client.query("select to_regclass('urutau.checkpoints') as table")).rows).toEqual([
    { table: null },
  ]);
  expect((await copy.client.query('select count(*)::int from orders')).rows).toEqual([{ count: 1000 }]);
  const again = await hostCommand(['teardown', '-f', file], env);
  expect(again.code).toBe(0);
  expect(again.stdout).toContain('nothing is there');
});

test('a target with rows that no checkpoint explains pauses its table alone: exit 3 with reason and remedy', async () => {
  const { copy, env, pipelineFile } = await shop();
  await copy.client.query('create table items (order_id bigint, line int, name text, primary key (order_id, line))');
  await copy.client.query("insert into items values (0, 0, 'mine')");

  const run = await hostCommand(['run', '-f', pipelineFile(), '--until-caught-up', '--log-level', 'warn'], env);

  expect(run.code).toBe(3);
  expect(run.stderr).toContain('public.items -> public.items: paused');
  expect(run.stderr).toMatch(/ {2}precondition-failed: the target public\.items holds rows.*\n {2}remedy: /);
  expect(run.stderr).toContain('public.orders -> public.orders: done; 1,000 rows copied');
});

test('rows go to standard output and nothing else does', async () => {
  const { env, pipelineFile } = await shop();
  const file = pipelineFile('type: stdout');

  const run = await hostCommand(['run', '-f', file, '--until-caught-up', '--log-format', 'json'], env);

  expect(run.code).toBe(0);
  const lines = run.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toHaveLength(1500);
  const logged = run.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(logged.filter(({ msg }) => msg === 'plan')).toHaveLength(2);

  const status = await hostCommand(['table', 'status', '-f', file, '--output', 'json'], env);
  expect(JSON.parse(status.stdout).tables).toMatchObject([{ snapshot: 'done' }, { snapshot: 'done' }]);
  const teardown = await hostCommand(['teardown', '-f', file, '--yes'], env);
  expect(teardown.stdout).toContain('store   position of orders');
});

test('validate --connect names every table that the source has not, and ends with 2', async () => {
  const { env, pipelineFile } = await shop();
  const tables = '  - { source: public.none, target: none }\n  - { source: public.nothing, target: nothing }\n';

  const connected = await hostCommand(['validate', '-f', pipelineFile(undefined, tables), '--connect'], env);

  expect(connected.code).toBe(2);
  expect(connected.stdout).toContain('  - table public.none does not exist\n    remedy: ');
  expect(connected.stdout).toContain('  - table public.nothing does not exist\n    remedy: ');
});

test('a run that the source refuses as a whole ends with 2, message and remedy, and no stack', async () => {
  const { source, env, pipelineFile } = await shop();
  await source.client.query('select pg_create_logical_replication_slot($1, $2)', [source.name, 'test_decoding']);

  const run = await hostCommand(['run', '-f', pipelineFile(), '--log-level', 'error'], env);

  expect(run.code).toBe(2);
  expect(run.stderr).toContain(
    `error: replication slot ${source.name} is of plugin test_decoding, not pgoutput\n  remedy: `,
  );
  expect(run.stderr).not.toContain('    at ');
});

test('a destination that cannot be reached is told once, without its password', async () => {
  const { env, pipelineFile } = await shop();
  const unreachable = { ...env, URUTAU_SINK_URI: 'postgres://me:hunter2@127.0.0.1:1/nowhere' };

  const { code, stdout, stderr } = await hostCommand(['validate', '-f', pipelineFile(), '--connect'], unreachable);

  expect(code).toBe(2);
  expect(stdout.match(/ECONNREFUSED 127\.0\.0\.1:1/g)).not.toBeNull();
  expect(stdout.match(/remedy:/g)).toHaveLength(1);
  expect(stdout + stderr).not.toContain('hunter2');
});

test('an answer that is longer than a pipe holds arrives whole', async () => {
  const { folder } = await shop();
  const file = join(folder, 'long.yaml');
  const tables = Array.from({ length: 5_000 }, (_, n) => `  - { source: public.t${n}, target: t${n}, colour: blue }\n`);
  writeFileSync(
    file,
    `pipeline: long\nsource: { kind: postgres, slotName: s }\nsink: { type: stdout }\ntables:\n${tables.join('')}`,
  );

  const { stdout } = await hostCommand(['validate', '-f', file, '--output', 'json']);

  expect(stdout.length).toBeGreaterThan(1_000_000);
  expect(JSON.parse(stdout).problems.length).toBeGreaterThanOrEqual(5_000);
});

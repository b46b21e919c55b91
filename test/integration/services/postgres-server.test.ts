import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { ownPostgres, postgresUri } from '../../services/postgres.ts';

test.each(['postgres18', 'postgres15'] as const)(
  'the shared %s answers with its version and logical replication',
  async (name) => {
    const server = inject(name);
    const { client } = await freshDatabase(server, 'answers');

    const { rows } = await client.query(
      "select current_setting('server_version') as version, current_setting('wal_level') as wal",
    );

    expect(rows).toEqual([{ version: expect.stringMatching(`^${server.version}\\.`), wal: 'logical' }]);
  },
);

test('an orderly restart keeps the data, the address and takes new settings', async () => {
  const server = await ownPostgres();
  await query(postgresUri(server), 'create table kept as select 7 as n');
  const { port, pid } = server;

  await server.restart({ wal_sender_timeout: '3s' });

  expect(server.port).toBe(port);
  expect(server.pid).not.toBe(pid);
  expect(await query(postgresUri(server), "select n, current_setting('wal_sender_timeout') as t from kept")).toEqual([
    { n: 7, t: '3s' },
  ]);
});

test('a killed server comes back with what was committed', async () => {
  const server = await ownPostgres({ version: 15 });
  await query(postgresUri(server), 'create table kept as select 7 as n');

  await server.kill();
  await expect(query(postgresUri(server), 'select 1')).rejects.toThrow('ECONNREFUSED');
  await server.restart();

  expect(await query(postgresUri(server), 'select n from kept')).toEqual([{ n: 7 }]);
});

test('the process that was started is the one that listens', async () => {
  const server = await ownPostgres();

  const [row] = await query(postgresUri(server), "select pg_read_file('postmaster.pid') as file");

  expect(String(row?.['file']).split('\n').slice(0, 4)).toEqual([
    String(server.pid),
    join(server.folder, 'db'),
    expect.anything(),
    String(server.port),
  ]);
});

test('a server with a password refuses a wrong one', async () => {
  const server = await ownPostgres({ password: 'pass:word/@' });

  expect(await query(postgresUri(server), 'select 1 as n')).toEqual([{ n: 1 }]);
  await expect(query(postgresUri({ ...server, password: 'wrong' }), 'select 1')).rejects.toThrow(
    'password authentication failed',
  );
});

test('a server that cannot start says why in its own words', async () => {
  await expect(ownPostgres({ settings: { wal_level: 'nonsense' } })).rejects.toThrow(
    /before it was ready:[\s\S]*wal_level/,
  );
});

test('a fresh database goes with its slots, also with one that is being read', async () => {
  const server = inject('postgres18');
  const { client, uri, name, drop } = await freshDatabase(server, 'dropped');
  await client.query("select pg_create_logical_replication_slot(s, 'test_decoding') from unnest(array[$1, $2]) as s", [
    `${name}_idle`,
    `${name}_read`,
  ]);
  await readSlot(uri, `${name}_read`);

  await drop();

  const left = await query(
    postgresUri(server),
    `select datname as name from pg_database where datname = '${name}' union all select slot_name from pg_replication_slots where slot_name like '${name}%'`,
  );
  expect(left).toEqual([]);
});

test('a server and its temporary folder go when the process that started it is killed', async () => {
  const script = `
    import { startPostgres } from './scripts/embedded-postgres.mjs';
    const { pid, folder } = await startPostgres();
    console.log(JSON.stringify({ pid, folder }));
    setInterval(() => {}, 60_000);`;
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const starter = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void starter.kill('SIGKILL'));
  const [line] = await once(createInterface(starter.stdout), 'line');
  const { pid, folder } = JSON.parse(line);
  expect(isAlive(pid)).toBe(true);

  starter.kill('SIGKILL');

  await expect
    .poll(() => ({ alive: isAlive(pid), folder: existsSync(folder) }), { timeout: 20_000 })
    .toEqual({ alive: false, folder: false });
});

async function query(uri: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Resolves when the server has begun to stream; the connection then lasts until the server ends it. */
async function readSlot(uri: string, slot: string): Promise<void> {
  const config: pg.ClientConfig & { replication: 'database' } = { connectionString: uri, replication: 'database' };
  const reader = new pg.Client(config);
  reader.on('error', () => {});
  await reader.connect();
  const streaming = once(Reflect.get(reader, 'connection'), 'replicationStart');
  void reader.query(`START_REPLICATION SLOT ${slot} LOGICAL 0/0`).catch(() => {});
  await streaming;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

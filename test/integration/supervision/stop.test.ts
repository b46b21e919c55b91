import { createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, inject, onTestFinished, test } from 'vitest';
import { figure } from '../../figures.ts';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, waitFor } from '../pipeline/host-process.ts';
import { processesOf } from './driver-folder.ts';
import { said, stuckHost } from './stuck-host.ts';

const STOP_MS = 1_000;
/** The shutdown action's time, SIGTERM's, two seconds more, and two for a busy machine. */
const STOPPED_MS_MAX = 2 * STOP_MS + 2_000 + 2_000;
const SUPERVISION = { stop: `${STOP_MS}ms`, backoff: { first: '60s', max: '60s' } };

const CRASHES = fileURLToPath(new URL('../../fixtures/drivers/crashes-before-ready.mjs', import.meta.url));

let slowestMs = 0;

async function expectStopInTime(host: HostProcess, signal: 'SIGINT' | 'SIGTERM' = 'SIGINT'): Promise<void> {
  const startMs = performance.now();
  process.kill(host.pid, signal);
  expect(await host.exitCode(), host.output.slice(-4000)).toBe(0);
  const ms = performance.now() - startMs;
  slowestMs = Math.max(slowestMs, ms);
  expect(ms).toBeLessThan(STOPPED_MS_MAX);
}

afterAll(() => figure('stops with 1 s for each step', `the slowest took ${Math.round(slowestMs)} ms`));

test.each([
  ['a sink never answers a commit', { sink: { stuckIn: 'commit' } }, 'stuck in commit'],
  ['a sink never reads its rows', { sink: { stuckIn: 'write' } }, 'stuck in write'],
  ['a sink never says where it was', { sink: { stuckIn: 'checkpoint' } }, 'stuck in checkpoint'],
  ['a sink is never ready', { sink: { stuckIn: 'start' } }, 'driver ready'],
  ['a sink does not come to its end', { sink: { stuckIn: 'close' } }, 'table is streaming'],
  ['a source never ends its stream', { source: { stuckIn: 'read' } }, 'stuck in read'],
  [
    'both drivers ignore every request to end and leave children',
    { source: { defiant: true }, sink: { defiant: true } },
    'table is streaming',
  ],
  ['a driver waits for its next start', { sinkProgram: CRASHES }, 'driver failed and is started again'],
] as const)('a host is stopped in time and leaves nothing behind though %s', async (_, stuck, when) => {
  const { host, folders } = stuckHost({ supervision: SUPERVISION, ...stuck });
  await said(host, when);

  await expectStopInTime(host);

  expect(processesOf(folders)).toEqual([]);
});

test.each(['source', 'sink'] as const)('a host is stopped in time though its %s driver is stopped', async (role) => {
  const { host, folders } = stuckHost({ supervision: SUPERVISION });
  const status = await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');
  process.kill(status[role].pid!, 'SIGSTOP');

  await expectStopInTime(host, 'SIGTERM');

  expect(processesOf(folders)).toEqual([]);
});

async function postgresHost(sinkUri: string) {
  const source = await freshDatabase(inject('postgres18'), 'stop_src');
  await source.client.query('create table orders (id int primary key); insert into orders values (1)');
  const host = new HostProcess({
    pipeline: {
      pipeline: 'stop',
      source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
      sink: { type: 'postgres', uri: sinkUri, flush: { interval: '50ms' } },
      supervision: SUPERVISION,
      tables: [{ source: 'public.orders', target: 'orders' }],
    },
  });
  return { host: host.start(), source: source.client };
}

test('a host is stopped in time though its destination is locked, and the next run writes what was given up', async () => {
  const sink = await freshDatabase(inject('postgres18'), 'stop_dst');
  const { host, source } = await postgresHost(sink.uri);
  await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');
  await sink.client.query('begin; lock table orders in access exclusive mode');
  await source.query('insert into orders values (2)');
  const watcher = await sink.connect();
  await waitFor('a commit that waits for the lock', 30_000, async () => {
    const { rows } = await watcher.query(`select 1 from pg_locks where relation = 'orders'::regclass and not granted`);
    return rows.length > 0 ? true : null;
  });

  await expectStopInTime(host);

  expect(host.output).toContain('the last commits took too long and are given up');
  await sink.client.query('commit');
  expect(await host.start('--until-caught-up').exitCode(), host.output.slice(-4000)).toBe(0);
  expect((await sink.client.query('select id from orders order by id')).rows).toEqual([{ id: 1 }, { id: 2 }]);
});

test('a host is stopped in time though its destination accepts and never answers', async () => {
  const connected = new Set<Socket>();
  const server = createServer((socket) => connected.add(socket.on('error', () => {})));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    for (const socket of connected) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const { host } = await postgresHost(`postgres://me@127.0.0.1:${port}/nowhere`);
  await waitFor('a connection to the destination', 30_000, async () => (connected.size > 0 ? true : null));

  await expectStopInTime(host);
});

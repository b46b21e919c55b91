import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { call } from '../../../../host/control/call.ts';
import { control, NoHostRunning } from '../../../../host/control/client.ts';
import { serveControl } from '../../../../host/control/server.ts';
import { streamingTable } from '../observe/status-of-a-pipeline.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';
import { SmallPipeline } from './small-pipeline.ts';

let stateDir: string;
const closing: (() => unknown)[] = [];

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'urutau-state-'));
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  rmSync(stateDir, { recursive: true, force: true });
});

test('status answers what the pipeline says, and which process says it', async () => {
  const pipeline = await host();

  expect(await control(stateDir).status()).toEqual({ ...pipeline.status(), pid: process.pid });
});

test('a table is paused, resumed and copied again, and its status is the answer', async () => {
  const pipeline = await host();
  const { pause, resume, resync } = control(stateDir);

  const answers = [
    await pause('public.orders'),
    await resume('copy.orders'),
    await resync('public.orders'),
    await resync('public.orders', { discardHistory: true }),
  ];

  expect(answers).toEqual(Array(4).fill(streamingTable));
  expect(pipeline.asked).toEqual([
    ['pause', 'public.orders'],
    ['resume', 'copy.orders'],
    ['resync', 'public.orders', { discardHistory: false }],
    ['resync', 'public.orders', { discardHistory: true }],
  ]);
});

test('the breaker of a driver is closed, and the status of the driver is the answer', async () => {
  const pipeline = await host();

  expect(await control(stateDir).resetDriver('sink')).toEqual(pipeline.status().sink);
  expect(pipeline.asked).toEqual([['reset', 'sink']]);
});

test('the dead letters of a table are replayed, and what was done is the answer', async () => {
  const pipeline = await host();

  expect(await control(stateDir).replay('public.orders')).toEqual({ keys: 1, changes: 2, refused: [] });
  expect(pipeline.asked).toEqual([['replay', 'public.orders']]);
});

test('an error of the host arrives with code, message and remedy', async () => {
  await host();

  await expect(control(stateDir).pause('nobody')).rejects.toMatchObject({
    name: 'UrutauError',
    code: 'table-not-found',
    message: 'this pipeline has no table nobody',
    remedy: 'It has: a, b.',
  });
});

test.each([
  ['/tables/public.orders/pause', { now: true }, 'the request cannot be read: Unrecognized key: "now"'],
  ['/tables/public.orders/resync', { discardHistory: 1 }, 'discardHistory: Invalid input: expected boolean'],
  ['/tables/public.orders/resync', 'x'.repeat(70_000), 'the request cannot be read: its body is over 65536 bytes'],
  ['/tables/public.orders/erase', {}, 'it answers 404 to POST /tables/public.orders/erase'],
  ['/status', {}, 'it answers 405 to POST /status'],
  ['/drivers/middle/reset', {}, 'it answers 404 to POST /drivers/middle/reset'],
  ['/drivers/sink/reset', { now: true }, 'the request cannot be read: Unrecognized key: "now"'],
])('a request to %s that is not understood changes nothing and is refused', async (path, body, message) => {
  const pipeline = await host();

  const answer = call(join(stateDir, 'control.sock'), { method: 'POST', path, body });

  await expect(answer).rejects.toThrow(message);
  expect(pipeline.asked).toEqual([]);
});

test('the socket is open to its owner alone, and goes with the host', async () => {
  await host();
  const path = join(stateDir, 'control.sock');
  expect([statSync(path).isSocket(), statSync(path).mode & 0o777]).toEqual([true, 0o600]);

  await closing.pop()!();

  expect(readdirSync(stateDir)).toEqual([]);
});

test('without a host, and without a state folder, the client says that none is running', async () => {
  await expect(control(stateDir).status()).rejects.toBeInstanceOf(NoHostRunning);
  await expect(control(join(stateDir, 'nothing', 'here')).pause('a')).rejects.toBeInstanceOf(NoHostRunning);
  await expect(control(join(stateDir, long())).status()).rejects.toBeInstanceOf(NoHostRunning);
  await expect(control(stateDir).status()).rejects.toMatchObject({
    message: `no host is running here: nothing listens on ${stateDir}/control.sock`,
  });
});

test('a second host on the same state folder is refused, and the first goes on', async () => {
  await host();

  await expect(host()).rejects.toMatchObject({
    code: 'config-invalid',
    message: `a host of pipeline shop already runs (pid ${process.pid})`,
  });
  expect(await control(stateDir).status()).toMatchObject({ pipeline: 'shop' });
});

test('of many hosts that start at the same moment exactly one gets the folder, also over the socket of a dead one', async () => {
  await deadSocket(join(stateDir, 'control.sock'));

  const starts = await Promise.allSettled(Array.from({ length: 8 }, () => host()));

  expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const start of starts) {
    if (start.status === 'rejected') expect(start.reason.message).toMatch(/^a host of pipeline shop already runs/);
  }
  expect(await control(stateDir).status()).toMatchObject({ pipeline: 'shop' });
  expect(readdirSync(stateDir)).toEqual(['control.sock']);
});

test('the socket that a killed host left behind is replaced', async () => {
  await deadSocket(join(stateDir, 'control.sock'));
  await expect(control(stateDir).status()).rejects.toBeInstanceOf(NoHostRunning);

  await host();

  expect(await control(stateDir).status()).toMatchObject({ pid: process.pid });
});

test('a host that holds the socket but answers strangely still holds it', async () => {
  await listening(join(stateDir, 'control.sock'), (server) => {
    server.on('connection', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno'));
  });

  await expect(host()).rejects.toThrow(
    `a host already runs in ${stateDir}, but cannot be asked: the host behind the control socket is not understood`,
  );
});

test('a file that is no socket is left alone', async () => {
  writeFileSync(join(stateDir, 'control.sock'), 'precious');

  await expect(host()).rejects.toMatchObject({
    code: 'config-invalid',
    message: `${stateDir}/control.sock is not a socket, so it is left alone`,
  });
});

test('a link to a file that no host made is replaced, and the file is left alone', async () => {
  const file = join(stateDir, 'precious');
  writeFileSync(file, 'precious');
  symlinkSync(file, join(stateDir, 'control.sock'));

  await host();

  expect([readFileSync(file, 'utf8'), statSync(join(stateDir, 'control.sock')).isSocket()]).toEqual(['precious', true]);
});

test('a state folder that cannot be made is refused with its path', async () => {
  writeFileSync(join(stateDir, 'file'), '');
  stateDir = join(stateDir, 'file');

  await expect(host()).rejects.toMatchObject({
    code: 'config-invalid',
    message: expect.stringContaining(`cannot listen on the control socket ${stateDir}/control.sock: `),
  });
  stateDir = dirname(stateDir);
});

test('a host that ends while it is asked is told from one that is not there', async () => {
  await listening(join(stateDir, 'control.sock'), (server) => {
    server.on('connection', (socket) => socket.destroy());
  });

  const answer = control(stateDir).status();

  await expect(answer).rejects.toMatchObject({
    code: 'internal',
    message: expect.stringContaining('the host ended before it answered'),
  });
});

test('where the path is too long for a socket, a link leads to one in a closed folder, and both go with the host', async () => {
  const path = join(stateDir, long(), 'control.sock');
  await host(dirname(path));
  const socket = readlinkSync(path);

  expect(statSync(socket).isSocket()).toBe(true);
  expect(statSync(dirname(socket)).mode & 0o777).toBe(0o700);
  expect(await control(dirname(path)).status()).toMatchObject({ pipeline: 'shop' });
  await expect(host(dirname(path))).rejects.toThrow('a host of pipeline shop already runs');

  await closing.pop()!();

  expect([readdirSync(dirname(path)), existsSync(dirname(socket))]).toEqual([[], false]);
});

test('the link and the closed folder of a killed host are replaced', async () => {
  const path = join(stateDir, long(), 'control.sock');
  await host(dirname(path));
  await closing.pop()!();
  const folder = mkdtempSync(join(tmpdir(), 'urutau-control-'));
  await deadSocket(join(folder, 's'));
  symlinkSync(join(folder, 's'), path);

  await host(dirname(path));

  expect(await control(dirname(path)).status()).toMatchObject({ pid: process.pid });
  expect([lstatSync(path).isSymbolicLink(), existsSync(folder)]).toEqual([true, false]);
});

async function host(folder = stateDir): Promise<SmallPipeline> {
  const pipeline = new SmallPipeline();
  const server = await serveControl({ stateDir: folder, pipeline, log: new RecordingLog() });
  closing.push(() => server.close());
  return pipeline;
}

/** A folder's name that makes every path in it too long for a socket. */
function long(): string {
  return 'a-folder-'.repeat(12);
}

async function listening(path: string, prepare: (server: Server) => void): Promise<void> {
  const server = createServer();
  prepare(server);
  server.listen(path);
  await once(server, 'listening');
  closing.push(() => server.close());
}

/** As kill -9 leaves it: the file is there, and nobody listens. */
async function deadSocket(path: string): Promise<void> {
  const script = 'require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))';
  await once(spawn(process.execPath, ['-e', script, path]), 'exit');
}

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ACTION, ENV } from '@urutau/contract';
import { expect, test } from 'vitest';
import { bundle } from './bundle.ts';
import { listens, spawnDriver, startDriver } from './driver-process.ts';
import { collect, FlightClient } from './flight-client.ts';

const SOURCE = await bundle('./endless-source.ts');
const STDOUT = fileURLToPath(new URL('../../../drivers/stdout/dist/sink.js', import.meta.url));
const PLAIN_SINK = fileURLToPath(new URL('../../fixtures/drivers/plain-sink/main.mjs', import.meta.url));
const UNAUTHENTICATED = 16;

const source = { role: 'source', program: SOURCE } as const;
const sink = { role: 'sink', program: STDOUT, config: { discard: true } } as const;

test.each([source, sink])('a $role says that it is ready in exactly one form', async (options) => {
  const driver = spawnDriver(options);

  expect(await driver.readiness).toBe(`{"ready":true,"protocolVersion":1,"pid":${driver.child.pid}}`);
});

test('over TCP the readiness line names the port, and a client reaches it', async () => {
  const driver = spawnDriver({ ...source, env: { [ENV.socket]: undefined, [ENV.bind]: '127.0.0.1:0' } });
  const { port, ...rest } = JSON.parse(await driver.readiness);
  const client = new FlightClient(`127.0.0.1:${port}`, driver.token);

  expect(rest).toEqual({ ready: true, protocolVersion: 1, pid: driver.child.pid });
  expect(await client.action(ACTION.heartbeat)).toBeUndefined();

  client.close();
});

test.each([ENV.stage, ENV.token, ENV.config, ENV.pluginDir, ENV.protocolVersion, ENV.socket])(
  'without %s a driver exits 2, names it, and never listens',
  async (name) => {
    const driver = spawnDriver({ ...source, env: { [name]: undefined } });

    expect(await driver.exited).toBe('code 2');
    expect(driver.stderr()).toContain(name);
    expect(listens(driver)).toBe(false);
  },
);

test('a host that speaks only an older protocol gets exit 2 and both versions', async () => {
  const driver = spawnDriver({ ...source, env: { [ENV.protocolVersion]: '0' } });

  expect(await driver.exited).toBe('code 2');
  expect(driver.stderr()).toContain('speaks protocol version 1, the host at most 0');
});

test('a wrong config ends a driver with 2 and names the field, never the value', async () => {
  const driver = spawnDriver({ ...source, config: { tally: 4711, hidden: 's3cret' } });

  expect(await driver.exited).toBe('code 2');
  expect(driver.stderr()).toMatch(/tally.*hidden/s);
  expect(driver.stderr()).not.toMatch(/4711|s3cret/);
});

test('the stdout sink refuses to start without the host’s standard output', async () => {
  const driver = spawnDriver({ role: 'sink', program: STDOUT });

  expect(await driver.exited).toBe('code 2');
  expect(driver.stderr()).toContain(ENV.hostStdout);
});

test('a driver exits 1 when the host’s end of its stdin closes', async () => {
  const driver = await startDriver({ ...source, lifeline: true });

  driver.child.stdin!.end();

  expect(await driver.exited).toBe('code 1');
  expect(driver.stderr()).toContain('the host is gone');
});

test.each([source, sink])('a $role exits 0 on SIGTERM', async (options) => {
  const driver = await startDriver(options);

  driver.child.kill('SIGTERM');

  expect(await driver.exited).toBe('code 0');
});

test.each([source, sink])('a $role answers shutdown and exits 0', async (options) => {
  const driver = await startDriver(options);

  expect(await driver.client.action(ACTION.shutdown)).toBeUndefined();
  expect(await driver.exited).toBe('code 0');
});

test('a source exits 0 on SIGTERM while a stream is open that nobody reads', async () => {
  const driver = await startDriver(source);
  const call = driver.client.read(await ticketOf(driver.client));
  await once(call, 'data');
  call.pause();

  driver.child.kill('SIGTERM');

  expect(await driver.exited).toBe('code 0');
});

test.concurrent.each([
  { name: 'the SDK', ...source },
  {
    name: 'plain JavaScript',
    role: 'sink' as const,
    program: PLAIN_SINK,
    config: { file: '/nowhere/rows', tables: {} },
  },
])('a driver in $name exits 1 within 18 s when no heartbeat comes', async (options) => {
  const driver = await startDriver(options);
  const startedMs = performance.now();

  expect(await driver.exited).toBe('code 1');
  expect(performance.now() - startedMs).toBeGreaterThan(13_000);
  expect(performance.now() - startedMs).toBeLessThan(18_000);
});

test.each([source, sink])('every call of a $role without the right bearer is UNAUTHENTICATED', async (options) => {
  const { client } = await startDriver(options);
  const { rpc } = client;
  const wrong = client.bearer('d3Jvbmc=');
  const none = client.bearer();
  none.remove('authorization');

  for (const metadata of [none, wrong]) {
    const calls = {
      listActions: () => collect(rpc.listActions({}, metadata)),
      doAction: () => collect(rpc.doAction({ type: ACTION.heartbeat }, metadata)),
      unknownAction: () => collect(rpc.doAction({ type: 'nothing' }, metadata)),
      doGet: () => collect(rpc.doGet({ ticket: Buffer.of(1) }, metadata)),
      doPut: () => collect(rpc.doPut(metadata)),
      getFlightInfo: () => client.info({ table: 'endless', mode: 'changes' }, metadata),
      getSchema: () =>
        new Promise((resolve, reject) => {
          rpc.getSchema({ cmd: Buffer.from('{}') }, metadata, (error: Error, answer: unknown) =>
            error ? reject(error) : resolve(answer),
          );
        }),
    };
    for (const [name, call] of Object.entries(calls)) {
      await expect(call(), name).rejects.toMatchObject({ code: UNAUTHENTICATED });
    }
  }
});

test('the handshake answers the token with an empty payload, and another one with UNAUTHENTICATED', async () => {
  const { client, token } = await startDriver(source);
  const handshake = (payload: string) => {
    const call = client.rpc.handshake();
    const answers = collect(call);
    call.write({ payload: Buffer.from(payload) });
    call.end();
    return answers;
  };

  expect((await handshake(token)).map(({ payload }) => payload.length)).toEqual([0]);
  await expect(handshake(`${token}x`)).rejects.toMatchObject({ code: UNAUTHENTICATED });
});

async function ticketOf(client: FlightClient): Promise<Uint8Array> {
  const { endpoint } = await client.info({ table: 'endless', mode: 'changes' });
  return endpoint[0]!.ticket.ticket;
}

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ACTION, decodeSchema, LIMIT } from '@urutau/contract';
import { expect, onTestFinished, test, vi } from 'vitest';
import { bundle } from './bundle.ts';
import { startDriver } from './driver-process.ts';
import { collect, type FlightClient } from './flight-client.ts';

const SOURCE = await bundle('./endless-source.ts');
const CHANGES = { table: 'endless', mode: 'changes' };
const status = { INVALID_ARGUMENT: 3, NOT_FOUND: 5, UNIMPLEMENTED: 12, UNAVAILABLE: 14 };

test('GetFlightInfo answers one endpoint, in order, with a schema and a ticket of at most 8 KiB', async () => {
  const { client } = await startDriver({ role: 'source', program: SOURCE });

  const info = await client.info(CHANGES);

  expect(info.endpoint).toHaveLength(1);
  expect(info.endpoint[0]!.ticket.ticket.length).toBeLessThanOrEqual(LIMIT.ticketBytesMax);
  expect(info.ordered).toBe(true);
  expect(decodeSchema(info.schema).fields.map(({ name }) => name)).toEqual(['op', 'after', 'offset', 'ts_source']);
  expect(JSON.parse(info.appMetadata.toString())).toEqual({ stream: 'one' });
});

test('a ticket can be used again, and one of another process is NOT_FOUND', async () => {
  const { client } = await startDriver({ role: 'source', program: SOURCE });
  const other = await startDriver({ role: 'source', program: SOURCE });
  const ticket = await ticketOf(client);

  for (const _ of [1, 2]) {
    const call = client.read(ticket);
    const [schema] = await once(call, 'data');
    call.cancel();
    expect(schema.dataHeader.length).toBeGreaterThan(0);
  }
  await expect(collect(other.client.rpc.doGet({ ticket }, other.client.bearer()))).rejects.toMatchObject({
    code: status.NOT_FOUND,
  });
});

test('batches carry their envelope beside the rows', async () => {
  const { client } = await startDriver({ role: 'source', program: SOURCE });
  const call = client.read(await ticketOf(client));
  const messages: { dataBody: Buffer; appMetadata: Buffer }[] = [];
  for await (const message of call) if (messages.push(message) === 4) break;

  const envelopes = messages.slice(1).map(({ appMetadata }) => JSON.parse(appMetadata.toString()));

  expect(envelopes).toEqual([1, 2, 3].map((seq) => ({ seq, rows: 16, ops: { c: 16, u: 0, d: 0 } })));
});

test('an error of the source reaches the host as status, text and code, after the batches before it', async () => {
  const { client } = await startDriver({ role: 'source', program: SOURCE, config: { refuse: 'the backend is away' } });
  const ticket = await ticketOf(client);
  let batches = -1;
  const read = async () => {
    for await (const _ of client.rpc.doGet({ ticket }, client.bearer())) batches++;
  };

  const error = await read().catch((error) => error);

  expect(batches).toBe(2);
  expect(error).toMatchObject({ code: status.UNAVAILABLE, details: 'the backend is away' });
  expect(JSON.parse(error.metadata.get('urutau-error')[0])).toMatchObject({
    code: 'source-unavailable',
    retry: 'backoff',
  });
});

test('a table, an action and a call that are not there are refused each in its own way', async () => {
  const { client } = await startDriver({ role: 'source', program: SOURCE });

  await expect(client.info({ table: 'other', mode: 'changes' })).rejects.toMatchObject({ code: status.NOT_FOUND });
  await expect(client.info({ table: 'endless', mode: 'sideways' })).rejects.toMatchObject({
    code: status.INVALID_ARGUMENT,
  });
  await expect(client.action('urutau.flush')).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  await expect(client.write([{ dataHeader: Buffer.of(1) }])).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  await expect(collect(client.rpc.listFlights({}, client.bearer()))).rejects.toMatchObject({
    code: status.UNIMPLEMENTED,
  });
});

test('every action that is listed is answered, and the optional ones are not listed', async () => {
  const { client } = await startDriver({ role: 'source', program: SOURCE });

  const actions = await client.listActions();

  expect(actions.toSorted()).toEqual(
    [
      ACTION.heartbeat,
      ACTION.shutdown,
      ACTION.status,
      ACTION.listTables,
      ACTION.describe,
      ACTION.cancelFlightInfo,
    ].toSorted(),
  );
  expect(await client.action(ACTION.listTables)).toEqual({ tables: [{ name: 'endless', supportsSnapshot: false }] });
  expect(await client.action(ACTION.status)).toEqual({ state: 'idle', tables: {}, uptimeSec: expect.any(Number) });
  expect(await client.action(ACTION.describe)).toMatchObject({
    name: 'endless',
    role: 'source',
    extensions: ['table-schema/1', 'envelope/1'],
  });
});

test('a heartbeat is answered within a second while a stream runs at full speed', async () => {
  const driver = await startDriver({ role: 'source', program: SOURCE });
  const call = driver.client.read(await ticketOf(driver.client));
  let bytes = 0;
  call.on('data', ({ dataBody }) => {
    bytes += dataBody.length;
  });
  await once(call, 'data');

  let slowestMs = 0;
  const heartbeats = 50;
  for (let i = 0; i < heartbeats; i++) {
    const startedMs = performance.now();
    await driver.client.action(ACTION.heartbeat);
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
  }
  call.cancel();

  expect(slowestMs).toBeLessThan(LIMIT.heartbeatAnswerMs);
  expect(bytes).toBeGreaterThan(heartbeats * 64 * 1024);
});

test('a reader that stops reading stops the source, within the window of the connection and two messages', async () => {
  const tally = tallyFile();
  const driver = await startDriver({ role: 'source', program: SOURCE, config: { tally } });
  const call = driver.client.read(await ticketOf(driver.client));
  await once(call, 'data');
  call.pause();

  // The source stands still when twenty heartbeats, each a turn of its loop, go by without another batch.
  let made = '';
  for (let still = 0; still < 20; ) {
    await driver.client.action(ACTION.heartbeat);
    const now = readFileSync(tally, 'utf8');
    still = now === made ? still + 1 : 0;
    made = now;
  }

  expect(Number(made)).toBeLessThan(32);
  expect(residentBytes(driver.child.pid!)).toBeLessThan(300 * 2 ** 20);

  call.resume();
  await vi.waitUntil(() => Number(readFileSync(tally, 'utf8')) > Number(made) + 100, { timeout: 20_000 });
  call.cancel();
});

test('one and a half gigabytes of batches leave the source’s memory flat', { timeout: 60_000 }, async () => {
  const driver = await startDriver({ role: 'source', program: SOURCE });
  const call = driver.client.read(await ticketOf(driver.client));
  let batches = 0;
  for await (const _ of call) {
    if (++batches === 1500) break;
    // A busy machine takes longer than the driver waits for its host.
    if (batches % 100 === 0) await driver.client.action(ACTION.heartbeat);
  }

  expect(residentBytes(driver.child.pid!)).toBeLessThan(300 * 2 ** 20);
});

test('a reader that goes away closes the source’s iterator', async () => {
  const tally = tallyFile();
  const driver = await startDriver({ role: 'source', program: SOURCE, config: { tally } });
  const call = driver.client.read(await ticketOf(driver.client));
  await once(call, 'data');

  call.cancel();

  await vi.waitUntil(() => readFileSync(tally, 'utf8').endsWith('closed'), { timeout: 20_000 });
});

async function ticketOf(client: FlightClient): Promise<Uint8Array> {
  return (await client.info(CHANGES)).endpoint[0]!.ticket.ticket;
}

function tallyFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'tally');
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

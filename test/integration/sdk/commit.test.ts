import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ACTION } from '@urutau/contract';
import { expect, onTestFinished, test } from 'vitest';
import { bundle } from './bundle.ts';
import { putBatch, putEvent, putStart } from './change-messages.ts';
import { startDriver } from './driver-process.ts';
import { collect, type FlightClient } from './flight-client.ts';

const SINK = await bundle('./committing-sink.ts');
const ABORTED = 10;
const INVALID_ARGUMENT = 3;

test('a commit waits for rows that come later, and the checkpoint is read back', async () => {
  const { client, journal } = await startSink();
  await commit(client, { stream: 1, through: 0, checkpoint: 'a', previous: null });

  const committed = commit(client, { stream: 1, through: 2, checkpoint: 'b', previous: 'a' });
  await client.action(ACTION.heartbeat);
  await client.write([putStart('orders', 1), rows(1), putEvent({ seq: 2, rows: 0, cut: true })]);
  await committed;

  expect(journal()).toEqual(
    ['commit 1/0', 'open orders 1', 'write 1/1 1', 'write 1/2 0', 'end 1', 'commit 1/2'].toSorted(),
  );
  expect(await client.action(ACTION.checkpoint, { writer: 'w', tables: ['orders', 'other'] })).toEqual({
    orders: { checkpoint: 'b' },
    other: { checkpoint: null },
  });
});

test('a fence answers what is stored, and a checkpoint that equals the one before is refused', async () => {
  const { client } = await startSink();
  await commit(client, { stream: 1, through: 0, checkpoint: 'a', previous: null });

  const fenced = await commit(client, { stream: 1, through: 0, checkpoint: 'b', previous: null }).catch(
    (error) => error,
  );
  const equal = await commit(client, { stream: 1, through: 0, checkpoint: 'a', previous: 'a' }).catch((error) => error);

  expect(fenced).toMatchObject({ code: ABORTED });
  expect(wire(fenced)).toMatchObject({ code: 'fenced', stored: 'a' });
  expect(equal).toMatchObject({ code: INVALID_ARGUMENT });
});

test('rows of a stream that the host broke off are never committed', async () => {
  const { client, journal } = await startSink();
  const call = client.rpc.doPut(client.bearer());
  const broken = collect(call).catch((error) => error);
  call.write(putStart('orders', 1));
  call.write(rows(1));
  await commit(client, { stream: 1, through: 1, checkpoint: 'a', previous: null });
  call.write(rows(2));
  call.cancel();
  await broken;

  const lost = await commit(client, { stream: 1, through: 2, checkpoint: 'b', previous: 'a' }).catch((error) => error);
  await commit(client, { stream: 1, through: 1, checkpoint: 'c', previous: 'a' });
  // A busy client's cancel shows as an ordinary end at first; at the latest the next stream has the rows forgotten.
  await commit(client, { stream: 2, through: 0, checkpoint: 'd', previous: 'c' });

  expect(wire(lost)).toMatchObject({ code: 'stream-lost', table: 'orders', stream: 1, seq: 2 });
  expect(journal().filter((line) => line.startsWith('discard'))).toEqual(['discard 1']);
});

test('a newer stream ends the older one, which is told that it is stale', async () => {
  const { client } = await startSink();
  const older = client.rpc.doPut(client.bearer());
  const ended = collect(older).catch((error) => error);
  older.write(putStart('orders', 1));
  older.write(rows(1));
  await commit(client, { stream: 1, through: 1, checkpoint: 'a', previous: null });

  await client.write([putStart('orders', 2)]);
  older.write(rows(2));

  expect(wire(await ended)).toMatchObject({ code: 'stale-stream', stream: 1 });
});

test('a refused row is told to the stream and to the commit that waits for it', async () => {
  const { client } = await startSink({ refuseSeq: 2 });
  const committed = commit(client, { stream: 1, through: 2, checkpoint: 'a', previous: null }).catch((error) => error);

  const written = await client.write([putStart('orders', 1), rows(1), rows(2)]).catch((error) => error);

  for (const error of [written, await committed]) {
    expect(wire(error)).toMatchObject({ code: 'row-refused', table: 'orders', stream: 1, seq: 2, row: 0 });
  }
});

test('batches out of their order, and a first message without a schema, are refused', async () => {
  const { client } = await startSink();

  const skipped = await client.write([putStart('orders', 1), rows(1), rows(3)]).catch((error) => error);
  const started = await client.write([rows(1)]).catch((error) => error);

  expect(skipped.details).toBe('expected batch 2 of the stream; came 3');
  expect(started.details).toBe('the first message of DoPut carries no descriptor');
});

function rows(seq: number): object {
  return putBatch([{ op: 'c', id: seq, name: 'tea' }], { seq, rows: 1, cut: true });
}

function commit(client: FlightClient, request: object): Promise<unknown> {
  return client.action(ACTION.commit, { writer: 'w', table: 'orders', ...request });
}

// biome-ignore lint/suspicious/noExplicitAny: an error of a client made at run time
function wire(error: any): unknown {
  return JSON.parse(error.metadata.get('urutau-error')[0]);
}

async function startSink(config: object = {}): Promise<{ client: FlightClient; journal(): string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const journal = join(folder, 'journal');
  const { client } = await startDriver({ role: 'sink', program: SINK, config: { journal, ...config } });
  return { client, journal: () => readFileSync(journal, 'utf8').trim().split('\n').toSorted() };
}

import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { encodeCheckpoint } from '../../../../host/checkpoint/checkpoint.ts';
import { type Batch, batchOf } from '../../../../host/pipeline/batch.ts';
import { CheckpointedStream } from '../../../../host/pipeline/checkpointed-stream.ts';
import { InFlightWindow } from '../../../../host/pipeline/in-flight.ts';
import { type Committed, Relay, type RelayOptions } from '../../../../host/pipeline/relay.ts';
import type { TableSink } from '../../../../host/pipeline/sink/port.ts';

const identity = {
  v: 1,
  writer: 'shop',
  run: 'r1',
  source: 'postgres:1/shop',
  stream: 3,
  schemaId: null,
  shape: 'upsert',
} as const;

/** A sink that keeps what it is given, and answers commits when told to. */
class KeptSink implements TableSink {
  seq = 0;
  onFailure: (error: UrutauError) => void = () => {};
  readonly calls: string[] = [];
  readonly commits: { checkpoint: string; previous: string | null; answer: (error?: Error) => void }[] = [];
  answersAtOnce = true;
  closed = false;

  write({ envelope }: Batch): Promise<void> {
    this.calls.push(`write ${envelope.rows}`);
    return Promise.resolve();
  }

  commit(checkpoint: string, previous: string | null): Promise<void> {
    this.calls.push('commit');
    return new Promise((resolve, reject) => {
      const answer = (error?: Error) => (error ? reject(error) : resolve());
      this.commits.push({ checkpoint, previous, answer });
      if (this.answersAtOnce) answer();
    });
  }

  close(): void {
    this.closed = true;
  }
}

function relayOf(sink: KeptSink, options: Partial<RelayOptions> = {}) {
  const committed: Committed[] = [];
  const failures: UrutauError[] = [];
  const window = new InFlightWindow({ bytesMax: 1000, commitAll: () => relay.commitSoon() });
  const relay: Relay = new Relay({
    table: 'public.orders',
    stream: new CheckpointedStream({ table: 'public.orders', sink, identity, stored: 'before' }),
    window,
    flush: { rows: 10, bytes: 500, intervalMs: 60_000 },
    uncommittedBytesMax: 400,
    position: { offset: 'AA==', snapshot: 'done' },
    nowMs: () => 0,
    committed: (done) => committed.push(done),
    failed: (error) => failures.push(error),
    ...options,
  });
  return { relay, committed, failures, window };
}

const batch = (rows: number, bytes = 10) =>
  batchOf({ seq: 1, rows, ops: { c: rows } }, new Uint8Array(0), [new Uint8Array(bytes)]);
const at = (offset: string) => ({ offset, snapshot: 'done' }) as const;

test('the stream is raised by a commit that repeats the position under a new number', async () => {
  const sink = new KeptSink();
  const { relay } = relayOf(sink);

  await relay.raise();

  expect(sink.commits[0]!.previous).toBe('before');
  expect(sink.commits[0]!.checkpoint).toBe(
    encodeCheckpoint({ ...identity, offset: 'AA==', snapshot: 'done', commit: 0 }),
  );
});

test('a commit follows when the rows reach the limit, and holds the position of the last of them', async () => {
  const sink = new KeptSink();
  const { relay, committed } = relayOf(sink);

  await relay.send(batch(6), at('AQ=='));
  expect(sink.calls).toEqual(['write 6']);
  await relay.send(batch(6), at('Ag=='));
  await relay.commitNow();

  expect(sink.calls).toEqual(['write 6', 'write 6', 'commit']);
  expect(committed.map(({ inserts, checkpoint }) => [inserts, checkpoint.offset])).toEqual([[12, 'Ag==']]);
});

test('rows that are sent while a commit runs belong to the next one', async () => {
  const sink = new KeptSink();
  sink.answersAtOnce = false;
  const { relay, committed } = relayOf(sink);

  await relay.send(batch(10), at('AQ=='));
  await relay.send(batch(3), at('Ag=='));
  expect(sink.commits.length).toBe(1);
  sink.answersAtOnce = true;
  sink.commits[0]!.answer();
  await relay.commitNow();

  expect(committed.map(({ checkpoint }) => checkpoint.offset)).toEqual(['AQ==', 'Ag==']);
  expect(sink.commits[1]!.previous).toBe(sink.commits[0]!.checkpoint);
});

test('no more than the sink takes is ever without an answer', async () => {
  const sink = new KeptSink();
  sink.answersAtOnce = false;
  const { relay } = relayOf(sink);
  await relay.send(batch(1, 300), at('AQ=='));

  let sent = false;
  const second = relay.send(batch(1, 300), at('Ag==')).then(() => {
    sent = true;
  });
  await new Promise(setImmediate);
  expect([sent, sink.commits.length]).toEqual([false, 1]);
  sink.commits[0]!.answer();
  await second;

  expect(sent).toBe(true);
});

test('a full window makes the table commit instead of waiting for itself', async () => {
  const sink = new KeptSink();
  const { relay, window } = relayOf(sink, {
    uncommittedBytesMax: 10_000,
    flush: { rows: 1e9, bytes: 1e9, intervalMs: 1e6 },
  });

  for (let i = 0; i < 10; i++) await relay.send(batch(1, 300), at('AQ=='));
  await relay.commitNow();

  expect(sink.commits.length).toBeGreaterThan(2);
  expect(window.bytes).toBe(0);
});

test('a fence that holds our own checkpoint means that only the answer was lost', async () => {
  const sink = new KeptSink();
  sink.answersAtOnce = false;
  const { relay, committed } = relayOf(sink);

  const raised = relay.raise();
  const [{ checkpoint, answer }] = sink.commits as [(typeof sink.commits)[0]];
  answer(new UrutauError('fenced', 'another checkpoint is stored', { stored: checkpoint }));
  await raised;

  expect(committed.length).toBe(1);
});

test('a fence of another run at a higher stream stops the table as superseded', async () => {
  const sink = new KeptSink();
  sink.answersAtOnce = false;
  const { relay } = relayOf(sink);

  const raised = relay.raise();
  const stored = encodeCheckpoint({ ...identity, run: 'r2', stream: 4, commit: 0, offset: 'AA==', snapshot: 'done' });
  sink.commits[0]!.answer(new UrutauError('fenced', 'another checkpoint is stored', { stored }));

  await expect(raised).rejects.toMatchObject({ code: 'superseded' });
});

test('a stream that breaks fails the table once and frees the window', async () => {
  const sink = new KeptSink();
  const { relay, failures, window } = relayOf(sink);
  await relay.send(batch(1, 100), at('AQ=='));

  sink.onFailure(new UrutauError('row-refused', 'the target refuses row 7', { key: '7' }));
  sink.onFailure(new UrutauError('row-refused', 'again'));

  expect(failures.map(({ message }) => message)).toEqual(['the target refuses row 7']);
  await expect(relay.send(batch(1), at('Ag=='))).rejects.toThrow('the target refuses row 7');
  relay.close();
  expect(window.bytes).toBe(0);
});

test('an idle table moves on by what the source says, but not under a batch that waits for room', async () => {
  const sink = new KeptSink();
  sink.answersAtOnce = false;
  const { relay } = relayOf(sink);
  relay.moveOn('AA==', 'AQ==');
  expect(relay.position.offset).toBe('AQ==');
  await relay.send(batch(1, 300), at('Ag=='));

  const waiting = relay.send(batch(1, 300), at('Aw=='));
  relay.moveOn('Ag==', 'BA==');
  expect(relay.position.offset).toBe('Ag==');
  sink.commits[0]!.answer();
  await waiting;
  relay.moveOn('Ag==', 'BA==');

  expect(relay.position.offset).toBe('Aw==');
});

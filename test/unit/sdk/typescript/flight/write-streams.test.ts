import { LIMIT, UrutauError } from '@urutau/contract';
import type { TableWriter } from '@urutau/sdk';
import { afterEach, expect, test, vi } from 'vitest';
import { WriteStreams } from '../../../../../sdk/typescript/flight/write-streams.ts';

afterEach(() => {
  vi.useRealTimers();
});

test('a commit that comes before its rows waits for them', async () => {
  const streams = new WriteStreams();
  const { outcome, settled } = watch(streams.waitFor('t', 1, 2));
  const stream = await streams.open(put(1), async () => new Recorder());

  stream.received(1);
  await Promise.resolve();
  expect(outcome()).toBe('waiting');
  stream.received(2);
  await settled;

  expect(outcome()).toBe('done');
});

test('a commit of no rows never waits', async () => {
  await new WriteStreams().waitFor('t', 1, 0);
});

test('a commit of rows that have come is answered at once, also after the end of the stream', async () => {
  const streams = new WriteStreams();
  const stream = await streams.open(put(1), async () => new Recorder());
  stream.received(3);
  stream.ended();

  await streams.waitFor('t', 1, 3);
});

test('a stream that ended short of the cut is lost', async () => {
  const streams = new WriteStreams();
  const stream = await streams.open(put(1), async () => new Recorder());
  const waiting = streams.waitFor('t', 1, 2);
  stream.received(1);

  stream.ended();

  await expect(waiting).rejects.toMatchObject({
    code: 'stream-lost',
    message: 'write stream 1 of t never brought batch 2: it ended at batch 1',
  });
});

test('a stream that is not opened in time is lost', async () => {
  vi.useFakeTimers();
  const streams = new WriteStreams();
  const { outcome, settled } = watch(streams.waitFor('t', 1, 1));

  await vi.advanceTimersByTimeAsync(LIMIT.streamOpenMs - 1);
  expect(outcome()).toBe('waiting');
  await vi.advanceTimersByTimeAsync(1);
  await settled;

  expect(outcome()).toBe('stream-lost');
  expect(vi.getTimerCount()).toBe(0);
});

test('a stream that is open may take its time', async () => {
  vi.useFakeTimers();
  const streams = new WriteStreams();
  const stream = await streams.open(put(1), async () => new Recorder());
  const { outcome, settled } = watch(streams.waitFor('t', 1, 1));

  await vi.advanceTimersByTimeAsync(100 * LIMIT.streamOpenMs);
  expect(outcome()).toBe('waiting');
  stream.received(1);
  await settled;

  expect(outcome()).toBe('done');
});

test('rows of a stream that broke are forgotten, so a commit of them is lost and not empty', async () => {
  const streams = new WriteStreams();
  const writer = new Recorder();
  const stream = await streams.open(put(1), async () => writer);
  stream.received(5);
  streams.committed('t', 1, 3);

  await stream.broke(new Error('the connection is gone'));

  await expect(streams.waitFor('t', 1, 5)).rejects.toMatchObject({ code: 'stream-lost' });
  await streams.waitFor('t', 1, 3);
  expect(writer.calls).toEqual(['discard']);
});

test('a commit that waits for a refused row is told why it was refused', async () => {
  const streams = new WriteStreams();
  const stream = await streams.open(put(1), async () => new Recorder());
  const waiting = streams.waitFor('t', 1, 1);
  const refusal = new UrutauError('row-refused', 'column a: too long', { row: 3 });

  await Promise.all([expect(waiting).rejects.toBe(refusal), stream.broke(refusal)]);
});

test('a newer stream discards the older one, once, and makes it stale', async () => {
  const streams = new WriteStreams();
  const writer = new Recorder();
  const older = await streams.open(put(1), async () => writer);
  const waiting = expect(streams.waitFor('t', 1, 9)).rejects.toMatchObject({ code: 'stale-stream' });
  const newer = await streams.open(put(2), async () => new Recorder());

  await waiting;
  expect(() => older.accept()).toThrow(expect.objectContaining({ code: 'stale-stream' }));
  await older.broke(new UrutauError('stale-stream', 'replaced'));
  newer.accept();

  expect(writer.calls).toEqual(['discard']);
});

test('a commit of a newer stream discards the older one before the newer is opened', async () => {
  const streams = new WriteStreams();
  const writer = new Recorder();
  const older = await streams.open(put(1), async () => writer);

  await streams.raise('t', 2);

  expect(writer.calls).toEqual(['discard']);
  expect(() => older.accept()).toThrow(expect.objectContaining({ code: 'stale-stream' }));
  await expect(streams.raise('t', 1)).rejects.toMatchObject({ code: 'stale-stream' });
  await expect(streams.open(put(1), async () => new Recorder())).rejects.toMatchObject({ code: 'stale-stream' });
});

test('a stream that is overtaken while its writer opens is discarded', async () => {
  const streams = new WriteStreams();
  const writer = new Recorder();

  const opening = streams.open(put(1), async () => {
    await streams.raise('t', 2);
    return writer;
  });

  await expect(opening).rejects.toMatchObject({ code: 'stale-stream' });
  expect(writer.calls).toEqual(['discard']);
});

test('a host that numbers no streams may open one after the other, and nothing that ended in order is discarded', async () => {
  const streams = new WriteStreams();
  const writer = new Recorder();
  const first = await streams.open({ mode: 'write', table: 't' }, async () => writer);
  first.ended();

  const second = await streams.open({ mode: 'write', table: 't' }, async () => new Recorder());
  second.accept();

  expect(writer.calls).toEqual([]);
});

test('tables do not know each other', async () => {
  const streams = new WriteStreams();
  const stream = await streams.open(put(1), async () => new Recorder());

  await streams.raise('another', 7);

  stream.accept();
});

class Recorder implements TableWriter {
  readonly calls: string[] = [];
  async write(): Promise<void> {
    this.calls.push('write');
  }
  async end(): Promise<void> {
    this.calls.push('end');
  }
  async discard(): Promise<void> {
    this.calls.push('discard');
  }
}

function put(stream: number) {
  return { mode: 'write', table: 't', stream } as const;
}

function watch(promise: Promise<void>): { outcome(): string; settled: Promise<void> } {
  let outcome = 'waiting';
  const settled = promise.then(
    () => {
      outcome = 'done';
    },
    (error) => {
      outcome = error.code;
    },
  );
  return { outcome: () => outcome, settled };
}

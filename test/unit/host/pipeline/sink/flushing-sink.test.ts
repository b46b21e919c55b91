import { expect, test } from 'vitest';
import { memoryStore } from '../../../../../host/checkpoint/memory-store.ts';
import { flushingSink } from '../../../../../host/pipeline/sink/flushing-sink.ts';
import { held, rows, servedSink } from '../served-sink.ts';
import { SHAPE } from '../shape.ts';

type Served = Awaited<ReturnType<typeof servedSink>>;

function sinkOf({ client }: Served) {
  const store = memoryStore();
  return { store, sink: flushingSink(client, 'shop', 'orders', SHAPE, store) };
}

test('a commit ends the stream, flushes, and only then stores the position', async () => {
  const flushing = held();
  const served = await servedSink({ flush: () => flushing.promise });
  const { sink, store } = sinkOf(served);

  await sink.write(rows(2));
  const committed = sink.commit('c1', null);
  await served.asked('flush');
  expect(store.read('shop', 'orders')).toBe(null);
  flushing.resolve();
  await committed;

  expect(served.calls).toEqual(['open', '1: 2 rows', 'end', 'flush']);
  expect(store.read('shop', 'orders')).toBe('c1');
});

test('rows that are written while a commit runs go into a stream of their own', async () => {
  const served = await servedSink();
  const { sink } = sinkOf(served);

  await Promise.all([sink.write(rows(1)), sink.commit('c1', null), sink.write(rows(2)), sink.commit('c2', 'c1')]);

  expect(served.calls).toEqual(['open', '1: 1 rows', 'end', 'flush', 'open', '1: 2 rows', 'end', 'flush']);
});

test('a flush that fails stores nothing, and no later commit passes over it', async () => {
  const served = await servedSink({ flush: () => Promise.reject(new Error('the disk is full')) });
  const { sink, store } = sinkOf(served);

  await sink.write(rows(1));
  await expect(sink.commit('c1', null)).rejects.toThrow('the disk is full');
  await expect(sink.commit('c2', null)).rejects.toThrow('the disk is full');

  expect(store.read('shop', 'orders')).toBe(null);
});

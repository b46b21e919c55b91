import { expect, test } from 'vitest';
import { memoryStore } from '../../../../../host/checkpoint/memory-store.ts';
import { openSink } from '../../../../../host/pipeline/sink/sink.ts';
import { servedSink } from '../served-sink.ts';

test('a sink can be asked for checkpoints after what it was opened for has ended', async () => {
  const { client } = await servedSink();
  const session = new AbortController();
  const sink = await openSink(client, 'shop', memoryStore, session.signal);

  session.abort();

  expect(await sink.checkpoints(['orders'])).toEqual(new Map([['orders', null]]));
  await expect(sink.checkpoints(['orders'], session.signal)).rejects.toBe(session.signal.reason);
});

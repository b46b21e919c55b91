import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { HostProcess } from '../integration/pipeline/host-process.ts';
import { freshDatabase } from '../services/databases.ts';

const IDLE_MS = 600_000;
const LOOK_EVERY_MS = 5_000;

test('a pipeline that has nothing to do for ten minutes keeps its drivers, and goes on at once', async () => {
  const source = await freshDatabase(inject('postgres18'), 'idle_src');
  const sink = await freshDatabase(inject('postgres18'), 'idle_dst');
  await source.client.query('create table orders (id int primary key); insert into orders values (1)');
  const host = new HostProcess({
    pipeline: {
      pipeline: 'idle',
      source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
      sink: { type: 'postgres', uri: sink.uri },
      tables: [{ source: 'public.orders', target: 'orders' }],
    },
  }).start();
  const before = await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');

  // Time has to pass for real: nothing happens that could be waited for.
  for (const endMs = performance.now() + IDLE_MS; performance.now() < endMs; ) {
    await delay(LOOK_EVERY_MS);
    const now = await host.until('an answer', () => true);
    expect(now.sessions).toBe(before.sessions);
    for (const role of ['source', 'sink'] as const) {
      expect(now[role]).toMatchObject({ state: 'ready', pid: before[role].pid, restarts: 0, lastFailure: null });
    }
  }

  await source.client.query('insert into orders values (2)');
  await host.until('the new row', ({ tables }) => tables[0]!.totals.inserts === 1, 10_000);
  expect(await host.stop()).toBe(0);
});

import { expect, test } from 'vitest';
import { Pipeline } from '../../../../host/pipeline/pipeline.ts';
import type { Supervisor } from '../../../../host/supervisor/supervisor.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';

/** A process in an uninterruptible wait of the system, which cannot be had on demand. */
const UNENDING = {
  start() {},
  ready: (signal: AbortSignal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  stop: () => new Promise<void>(() => {}),
} as unknown as Supervisor;

test('a table whose dead letters are applied is neither paused nor resumed nor copied again meanwhile', async () => {
  const stop = new AbortController();
  const table = {
    source: 'public.orders',
    target: 'orders',
    writeMode: 'upsert',
    onDelete: 'record',
    onPoison: 'quarantine',
    onTruncate: 'fail',
    createIfNotExists: true,
  } as const;
  const pipeline = unending({ tables: [table], readBack: () => new Promise(() => {}) });
  const running = pipeline.run(stop.signal);
  const replaying = pipeline.replay('orders');
  replaying.catch(() => {});

  for (const command of ['pause', 'resume', 'resync', 'replay'] as const) {
    await expect(pipeline[command]('orders')).rejects.toThrow('the dead letters of public.orders are being applied');
  }
  expect(pipeline.status().tables[0]!.reason!.code).toBe('replaying');

  stop.abort();
  await expect(replaying).rejects.toThrow();
  await running;
});

test('a driver that not even SIGKILL ends is left to the system when its host is stopped', async () => {
  const log = new RecordingLog();
  const stop = new AbortController();
  const pipeline = unending({ log });

  const running = pipeline.run(stop.signal);
  stop.abort();

  expect(await running).toEqual({ kind: 'stopped' });
  expect(log.lines.map(({ msg }) => msg)).toContain('a driver does not end even by SIGKILL and is left to the system');
});

function unending(more: Partial<ConstructorParameters<typeof Pipeline>[0]> = {}): Pipeline {
  return new Pipeline({
    name: 'unending',
    run: 'r',
    tables: [],
    snapshotMode: 'none',
    flush: { rows: 1, bytes: 1, intervalMs: 1 },
    windowBytes: 1,
    stopMs: 50,
    deadLetters: 'none',
    readBack: null,
    untilCaughtUp: false,
    supervisor: () => UNENDING,
    store: () => {
      throw new Error('not asked for');
    },
    log: new RecordingLog(),
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    random: () => 0.5,
    announced: () => {},
    ...more,
  });
}

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

test('a driver that not even SIGKILL ends is left to the system when its host is stopped', async () => {
  const log = new RecordingLog();
  const stop = new AbortController();
  const pipeline = new Pipeline({
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
    log,
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    random: () => 0.5,
    announced: () => {},
  });

  const running = pipeline.run(stop.signal);
  stop.abort();

  expect(await running).toEqual({ kind: 'stopped' });
  expect(log.lines.map(({ msg }) => msg)).toContain('a driver does not end even by SIGKILL and is left to the system');
});

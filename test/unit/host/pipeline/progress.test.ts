import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchProgress } from '../../../../host/pipeline/progress.ts';
import type { TableTask } from '../../../../host/pipeline/table/task.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';
import { offset, SmallSource } from './small-ports.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Watched = Pick<TableTask, 'idle' | 'position' | 'snapshotDone' | 'commitSoon' | 'progressed'> & {
  table: { name: string };
};

function watched(task: Partial<Watched>, source = new SmallSource()) {
  const ended = new AbortController();
  let caughtUp = 0;
  const watching = watchProgress({
    source: source.port,
    tasks: () => [{ table: { name: 'orders' }, snapshotDone: true, commitSoon: () => {}, ...task } as TableTask],
    untilCaughtUp: true,
    nowMs: () => Date.now(),
    log: new RecordingLog(),
    caughtUp: () => {
      caughtUp++;
      ended.abort();
    },
    signal: ended.signal,
  });
  const end = async () => {
    ended.abort();
    await watching;
    return caughtUp;
  };
  return { end };
}

function baseSource(): SmallSource {
  const source = new SmallSource();
  source.isBase = true;
  return source;
}

const position = { offset: offset(1), snapshot: 'done' } as const;

test('a table of a base source that waits for it has caught up when no row came for five seconds', async () => {
  const { end } = watched({ idle: true, position }, baseSource());
  await vi.advanceTimersByTimeAsync(4_900);
  await vi.advanceTimersByTimeAsync(300);

  expect(await end()).toBe(1);
});

test('a table that waits for its sink has not caught up, however long nothing moves', async () => {
  const { end } = watched({ idle: false, position }, baseSource());
  await vi.advanceTimersByTimeAsync(60_000);

  expect(await end()).toBe(0);
});

test('a table is caught up only when its position has reached the head of the log', async () => {
  const source = new SmallSource();
  source.head = offset(3);
  const task = { position: { offset: offset(2), snapshot: 'done' as const }, progressed: async () => {} };
  const { end } = watched(task, source);
  await vi.advanceTimersByTimeAsync(1_000);
  task.position = { offset: offset(3), snapshot: 'done' };
  await vi.advanceTimersByTimeAsync(0);

  expect(await end()).toBe(0);
});

import type { Log } from '../observe/log.ts';
import { pause, systemClock } from '../supervisor/clock.ts';
import type { SourcePort } from './source/port.ts';
import type { TableTask } from './table/task.ts';

export interface ProgressWatch {
  source: SourcePort;
  /** The tables that are being carried now. */
  tasks: () => readonly TableTask[];
  untilCaughtUp: boolean;
  nowMs: () => number;
  log: Log;
  /** Every snapshot is done and every table has passed the head of the log taken after the last one. */
  caughtUp: () => void;
  signal: AbortSignal;
}

/** While something waits for the answer, and while nothing does. */
const POLL_EAGER_MS = 25;
const POLL_IDLE_MS = 10_000;
/** Idle tables commit their position so often at most, so that they do not pin the source's log for ever. */
const IDLE_COMMIT_MS = 300_000;
/** CNF-6: one that keeps so much of the log back commits at once. */
const HELD_BYTES_MAX = 64 * 1024 * 1024;
/** HOST-8: without `lagEvents`, a base source is caught up when no row came for so long. */
const BASE_QUIET_MS = 5_000;
/** With `lagEvents` 0 the last rows may still be on their way. */
const BASE_SETTLE_MS = 500;

/** Asks the source how far it is, moves idle tables on, and finds the moment at which everything is caught up. */
export async function watchProgress(watch: ProgressWatch): Promise<void> {
  const { signal, log } = watch;
  const judge = watch.source.progress ? byHead(watch) : byQuiet(watch);
  let idleCommitMs = watch.nowMs();
  while (!signal.aborted) {
    try {
      await moveIdleTables(watch);
      if (watch.untilCaughtUp && (await judge())) watch.caughtUp();
    } catch (error) {
      // The streams themselves report what is wrong with the source; this only asks again.
      log.debug('the source did not answer about its progress', { error: String(error) });
    }
    if (watch.nowMs() - idleCommitMs > IDLE_COMMIT_MS) {
      idleCommitMs = watch.nowMs();
      for (const task of watch.tasks()) task.commitSoon();
    }
    await pause(systemClock, isEager(watch) ? POLL_EAGER_MS : POLL_IDLE_MS, signal);
  }
}

function isEager({ untilCaughtUp, tasks }: ProgressWatch): boolean {
  return untilCaughtUp || tasks().some(({ snapshotDone }) => !snapshotDone);
}

/** Takes over how far the source has read for tables that wait for it alone. */
export async function moveIdleTables({ source, tasks }: Pick<ProgressWatch, 'source' | 'tasks'>): Promise<void> {
  if (!source.progress) return;
  const carried = tasks();
  if (carried.length === 0) return;
  const answers = await source.progress.of(carried.map(({ table }) => table.name));
  for (const task of carried) {
    const answer = answers[task.table.name];
    if (!answer) continue;
    await task.progressed(answer);
    if ((answer.heldBytes ?? 0) >= HELD_BYTES_MAX) task.commitSoon();
  }
}

function byHead({ source, tasks }: ProgressWatch): () => Promise<boolean> {
  let head: string | null = null;
  return async () => {
    if (!tasks().every(({ snapshotDone }) => snapshotDone)) return false;
    head ??= await source.progress!.head();
    for (const { position } of tasks()) {
      if (position === null || position.offset === null) return false;
      const order = await source.compare(position.offset, head);
      if (order !== 0 && order !== 1) return false;
    }
    return true;
  };
}

function byQuiet({ source, tasks, nowMs }: ProgressWatch): () => Promise<boolean> {
  let seen = '';
  let sinceMs = nowMs();
  return async () => {
    const positions = JSON.stringify(tasks().map(({ position }) => position));
    // A table that waits for its sink is not quiet, however long nothing moves.
    if (positions !== seen || !tasks().every(({ idle }) => idle)) {
      seen = positions;
      sinceMs = nowMs();
    }
    const quietMs = nowMs() - sinceMs;
    if (quietMs < BASE_SETTLE_MS) return false;
    const lag = await source.lag();
    return tasks().every(({ table }) => {
      const events = lag[table.name];
      return events === undefined ? quietMs >= BASE_QUIET_MS : events === 0;
    });
  };
}

import type { Log } from '../observe/log.ts';
import { type SnapshotStatus, snapshotProgress } from './snapshot-progress.ts';
import type { StatusLine } from './status-line.ts';

const LINE_EVERY_MS = 250;
const LOG_EVERY_MS = 5_000;

/** Shows how far snapshots are: on one line of a terminal, else in the log every few seconds. */
export function watchSnapshots({ tables, line, log }: SnapshotWatch): { close(): void } {
  const progress = snapshotProgress();
  const show = () => {
    const text = progress(tables(), performance.now());
    if (line !== null) line.show(text ?? '');
    else if (text !== null) log.info(`copying ${text}`);
  };
  const timer = setInterval(show, line === null ? LOG_EVERY_MS : LINE_EVERY_MS);
  return {
    close: () => {
      clearInterval(timer);
      line?.show('');
    },
  };
}

export interface SnapshotWatch {
  readonly tables: () => readonly SnapshotStatus[];
  /** Null where there is no terminal. */
  readonly line: StatusLine | null;
  readonly log: Log;
}

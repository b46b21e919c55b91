import { asUrutauError, UrutauError } from '@urutau/contract';
import type { Log } from '../observe/log.ts';
import { InFlightWindow } from './in-flight.ts';
import { moveIdleTables, watchProgress } from './progress.ts';
import type { DeadLetterBox } from './quarantine/dead-letter-box.ts';
import { planOf, resumePoints } from './resume-points.ts';
import type { SinkPort } from './sink/port.ts';
import { Confirmer } from './source/confirm.ts';
import type { SourcePort } from './source/port.ts';
import type { Table } from './table/table.ts';
import { ReassignWanted, type SessionContext, TableTask } from './table/task.ts';

export interface SessionOptions {
  source: SourcePort;
  sink: SinkPort;
  /** All tables of the pipeline; those that are paused only keep their claim on the log. */
  tables: readonly Table[];
  writer: string;
  run: string;
  snapshotMode: 'initial' | 'none';
  flush: { rows: number; bytes: number; intervalMs: number };
  windowBytes: number;
  untilCaughtUp: boolean;
  log: Log;
  nowMs: () => number;
  wallMs: () => number;
  /** A table cannot go on by itself. */
  faulted: (table: Table, error: UrutauError) => void;
  /** Says what will be done with a table before it is done. */
  announced: (table: Table, plan: string) => void;
  committed: (millis: number) => void;
  deadLetters: DeadLetterBox;
  /** Dead letters of the table whose ordinals are below `before` no longer count, and may go. */
  lettersVoid: (table: Table, before: bigint) => void;
  /** Given the session's handle as soon as tables run. */
  opened: (session: SessionHandle) => void;
}

export interface SessionHandle {
  readonly window: InFlightWindow;
  /** Ends one table's task; what it sent is committed first. */
  stop(table: Table): Promise<void>;
  /** Commits what has come of a table, and where nothing has, how far its source is; without waiting for the commit. */
  commit(table: Table): Promise<void>;
}

/** How a session ended: asked to, everything caught up, or to be begun anew (after a delay where a backend is away). */
export type SessionEnd =
  | { kind: 'stopped' }
  | { kind: 'caught-up' }
  | { kind: 'again'; why: string; table: Table | null; error: UrutauError | null };

/** Not narrowed to its own kind: callbacks replace it. */
const STOPPED = { kind: 'stopped' } as SessionEnd;

/**
 * One session: both drivers alive, all tables assigned from the checkpoints just read, each carried by its task. Any
 * reason to read resume points again ends the whole session: one path for every recovery.
 */
export async function runSession(options: SessionOptions, signal: AbortSignal): Promise<SessionEnd> {
  const { source, sink, tables, log } = options;
  const points = await resumePoints(options, signal);
  if (points === null) return { kind: 'again', why: 'a table was paused meanwhile', table: null, error: null };
  if (signal.aborted) return STOPPED;
  const ending = new AbortController();
  const stopped = () => ending.abort();
  signal.addEventListener('abort', stopped, { once: true });
  let end = STOPPED;
  const finish = (why: SessionEnd) => {
    if (ending.signal.aborted) return;
    end = why;
    ending.abort();
  };
  const tasks = new Map<Table, { task: TableTask; over: Promise<void> }>();
  const window = new InFlightWindow({
    bytesMax: options.windowBytes,
    commitAll: () => {
      for (const { task } of tasks.values()) task.commitSoon();
    },
  });
  const confirmer = source.confirm && new Confirmer(source.confirm, log);
  const context: SessionContext = {
    source,
    sink,
    window,
    writer: options.writer,
    run: options.run,
    sourceIdentity: points.identity,
    flush: options.flush,
    log,
    nowMs: options.nowMs,
    wallMs: options.wallMs,
    committed: options.committed,
    deadLetters: options.deadLetters,
    lettersVoid: options.lettersVoid,
    confirm: (table, offset) => confirmer?.durable(table, offset),
  };
  let reassignFor: ReassignWanted | null = null;
  const carry = async (task: TableTask): Promise<void> => {
    const { table } = task;
    try {
      await task.run();
    } catch (error) {
      if (error instanceof ReassignWanted) reassignFor = error;
      else if (ending.signal.aborted && end.kind !== 'caught-up') {
        log.debug('table ended with its session', { table: table.name, error: String(error) });
      } else {
        const why = onFault(table, asUrutauError(error, 'internal', { table: table.name }), options);
        // Caught up is what is durable: a last commit that failed takes it back.
        if (why && ending.signal.aborted) end = why;
        else if (why) finish(why);
      }
    }
    // A picture that is still being read would begin anew: a complete one waits for the others.
    const othersRead = [...tasks.values()].some(({ task }) => task.readsPicture);
    if (reassignFor && !othersRead) finish({ kind: 'again', why: reassignFor.message, table: null, error: null });
  };
  for (const [table, start] of points.starts) {
    table.apply({ kind: 'started' });
    options.announced(table, planOf(table, start, sink));
    const task = new TableTask(table, context, start);
    tasks.set(table, { task, over: Promise.resolve() });
  }
  for (const running of tasks.values()) running.over = carry(running.task);
  options.opened({
    window,
    stop: async (table) => {
      const running = tasks.get(table);
      running?.task.drain();
      await running?.over;
    },
    commit: async (table) => {
      const running = tasks.get(table);
      if (running === undefined || !isCarried(table)) return;
      await moveIdleTables({ source, tasks: () => [running.task] });
      running.task.commitSoon();
    },
  });
  const progress = watchProgress({
    source: source.within(ending.signal),
    tasks: () => [...tasks.values()].map(({ task }) => task).filter(({ table }) => isCarried(table)),
    untilCaughtUp: options.untilCaughtUp,
    nowMs: options.nowMs,
    log,
    caughtUp: () => finish({ kind: 'caught-up' }),
    signal: ending.signal,
  });
  await aborted(ending.signal);
  signal.removeEventListener('abort', stopped);
  for (const { task } of tasks.values()) task.drain();
  await Promise.all([...tasks.values()].map(({ over }) => over));
  await progress;
  if (signal.aborted && signal.reason instanceof UrutauError) confirmer?.close();
  else await confirmer?.flush();
  for (const table of tables) table.apply({ kind: end.kind === 'caught-up' ? 'finished' : 'session-ended' });
  return end;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function isCarried({ state: { kind } }: Table): boolean {
  return kind === 'planning' || kind === 'snapshotting' || kind === 'streaming';
}

/** `retry` of the code decides: this table alone stops, or the session begins anew. */
function onFault(table: Table, error: UrutauError, options: SessionOptions): SessionEnd | null {
  if (error.retry === 'never' || error.code === 'schema-changed') {
    options.faulted(table, error);
    return null;
  }
  return { kind: 'again', why: `${table.name}: ${error.message}`, table, error };
}

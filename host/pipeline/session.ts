import { type AssignAnswer, type AssignRequest, asUrutauError, UrutauError } from '@urutau/contract';
import { acceptCheckpoint } from '../checkpoint/accept.ts';
import { type Checkpoint, decodeCheckpoint, type SnapshotProgress } from '../checkpoint/checkpoint.ts';
import type { Log } from '../observe/log.ts';
import { InFlightWindow } from './in-flight.ts';
import { watchProgress } from './progress.ts';
import type { SinkPort } from './sink/port.ts';
import { Confirmer } from './source/confirm.ts';
import type { SourcePort } from './source/port.ts';
import type { Start } from './table/start.ts';
import type { Table } from './table/table.ts';
import { fingerprint, ReassignWanted, type SessionContext, TableTask } from './table/task.ts';

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
  /** Given the session's handle as soon as tables run. */
  opened: (session: SessionHandle) => void;
}

export interface SessionHandle {
  readonly window: InFlightWindow;
  /** Ends one table's task; what it sent is committed first. */
  stop(table: Table): Promise<void>;
}

/** How a session ended: asked to, everything caught up, or to be begun anew (after a delay where a backend is away). */
export type SessionEnd =
  | { kind: 'stopped' }
  | { kind: 'caught-up' }
  | { kind: 'again'; why: string; table: Table | null; error: UrutauError | null };

const RANGES = 8;

/**
 * One session: both drivers alive, all tables assigned from the checkpoints just read, each carried by its task. Any
 * reason to read resume points again ends the whole session: one path for every recovery.
 */
export async function runSession(options: SessionOptions, signal: AbortSignal): Promise<SessionEnd> {
  const { source, sink, tables, log } = options;
  const { starts, identity } = await resumePoints(options);
  const ending = new AbortController();
  const all = AbortSignal.any([signal, ending.signal]);
  let end: SessionEnd = { kind: 'stopped' };
  const finish = (why: SessionEnd) => {
    if (ending.signal.aborted) return;
    end = why;
    ending.abort();
  };
  const tasks = new Map<Table, { task: TableTask; over: Promise<void>; stop: AbortController }>();
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
    sourceIdentity: identity,
    flush: options.flush,
    log,
    nowMs: options.nowMs,
    wallMs: options.wallMs,
    committed: options.committed,
    confirm: (table, offset) => confirmer?.durable(table, offset),
  };
  for (const [table, start] of starts) {
    table.apply({ kind: 'started' });
    options.announced(table, planOf(table, start, sink));
    const task = new TableTask(table, context, start);
    const stop = new AbortController();
    const over = task.run(AbortSignal.any([all, stop.signal])).catch((error) => {
      if (all.aborted) log.debug('table ended with its session', { table: table.name, error: String(error) });
      else if (error instanceof ReassignWanted) finish({ kind: 'again', why: error.message, table, error: null });
      else {
        const end = onFault(table, asUrutauError(error, 'internal', { table: table.name }), options);
        if (end) finish(end);
      }
    });
    tasks.set(table, { task, over, stop });
  }
  options.opened({
    window,
    stop: async (table) => {
      const running = tasks.get(table);
      running?.stop.abort();
      await running?.over;
    },
  });
  const progress = watchProgress({
    source,
    tasks: () => [...tasks.values()].map(({ task }) => task).filter(({ table }) => isCarried(table)),
    untilCaughtUp: options.untilCaughtUp,
    nowMs: options.nowMs,
    log,
    caughtUp: () => finish({ kind: 'caught-up' }),
    signal: all,
  });
  await new Promise<void>((resolve) => {
    if (all.aborted) resolve();
    else all.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.all([...tasks.values()].map(({ over }) => over));
  await progress;
  if (signal.aborted && signal.reason instanceof UrutauError) confirmer?.close();
  else await confirmer?.flush();
  const finished = (end as SessionEnd).kind === 'caught-up';
  for (const table of tables) table.apply({ kind: finished ? 'finished' : 'session-ended' });
  return end;
}

/** Reads the checkpoints and assigns the source's tables from them. Tables that cannot go on are paused one by one. */
async function resumePoints(options: SessionOptions): Promise<{ starts: Map<Table, Start>; identity: string }> {
  const { source, sink, tables, writer } = options;
  const stored = await storedCheckpoints(options);
  const assigned = source.assign ? await assign(options, stored) : null;
  const identity = assigned?.source ?? '';
  const starts = new Map<Table, Start>();
  for (const table of tables) {
    if (!table.wanted) continue;
    try {
      const mine = stored.get(table)!;
      if (mine.checkpoint && !table.resyncAsked) {
        acceptCheckpoint(table.settings.target, mine.checkpoint, {
          writer,
          source: identity,
          shape: fingerprint(table),
        });
      }
      if (table.resyncAsked && !sink.capabilities.truncate) throw cannotTruncate(table);
      const begin = assigned?.tables[table.name];
      table.checkpoint = mine.checkpoint;
      table.estimatedRows = begin?.estimatedRows ?? table.estimatedRows;
      starts.set(table, await startOf(table, mine, begin?.start ?? null, options));
    } catch (error) {
      const urutau = asUrutauError(error, 'internal', { table: table.name });
      if (urutau.retry !== 'never') throw urutau;
      options.faulted(table, urutau);
    }
  }
  return { starts, identity };
}

interface Stored {
  text: string | null;
  checkpoint: Checkpoint | null;
}

async function storedCheckpoints({ sink, tables, faulted }: SessionOptions): Promise<Map<Table, Stored>> {
  const answers = await sink.checkpoints(tables.map(({ settings }) => settings.target));
  const stored = new Map<Table, Stored>();
  for (const table of tables) {
    const answer = answers.get(table.settings.target) ?? null;
    try {
      if (answer instanceof UrutauError) throw answer;
      const checkpoint = answer === null ? null : decodeCheckpoint(answer, table.settings.target);
      stored.set(table, { text: answer, checkpoint });
    } catch (error) {
      const urutau = asUrutauError(error);
      if (urutau.retry !== 'never') throw urutau;
      stored.set(table, { text: null, checkpoint: null });
      if (table.wanted) faulted(table, urutau);
    }
  }
  return stored;
}

/** ASG-5: failures of single tables pause them; the rest is assigned without them. */
async function assign(options: SessionOptions, stored: ReadonlyMap<Table, Stored>): Promise<AssignAnswer> {
  for (;;) {
    const request = assignRequest(options.tables, stored);
    try {
      return await options.source.assign!(request);
    } catch (error) {
      const failures = error instanceof UrutauError ? (error.context.failures ?? []) : [];
      const failed = options.tables.filter(
        ({ name, wanted }) => wanted && failures.some(({ table }) => table === name),
      );
      const general = failures.length === 0 || failures.some(({ table }) => table === undefined);
      if (general || failed.length === 0) throw error;
      for (const table of failed) {
        const own = failures.filter((failure) => failure.table === table.name);
        const [first] = own;
        const message = own.map(({ problem }) => problem).join('; ');
        const remedy = own.map((failure) => failure.remedy).join(' ');
        options.faulted(
          table,
          new UrutauError(first!.code ?? 'precondition-failed', message, { table: table.name, remedy }),
        );
      }
    }
  }
}

function assignRequest(tables: readonly Table[], stored: ReadonlyMap<Table, Stored>): AssignRequest {
  return {
    tables: tables.flatMap((table) => {
      const checkpoint = table.resyncAsked ? null : (stored.get(table)?.checkpoint ?? null);
      const offset = checkpoint?.offset ?? null;
      const lost = table.state.kind === 'paused' && KEEPS_NO_CLAIM.has(table.state.reason.code);
      if (lost || (!table.wanted && offset === null)) return [];
      const hold = !table.wanted || isPicture(table, checkpoint);
      const schemaId = checkpoint?.schemaId ?? null;
      return [
        {
          table: table.name,
          ...(offset === null || (hold && table.wanted) ? {} : { fromOffset: offset }),
          ...(schemaId === null ? {} : { schemaId }),
          ...(hold ? { hold } : {}),
        },
      ];
    }),
  };
}

/** Faults after which the source can keep nothing for the table. */
const KEEPS_NO_CLAIM: ReadonlySet<string> = new Set([
  'position-lost',
  'schema-lost',
  'table-not-found',
  'precondition-failed',
]);

/** A table whose snapshot is one consistent picture is read beside the log and streams only afterwards. */
function isPicture(table: Table, checkpoint: Checkpoint | null): boolean {
  if (checkpoint) return checkpoint.snapshot !== 'done' && 'picture' in checkpoint.snapshot;
  return table.settings.writeMode !== 'upsert';
}

async function startOf(
  table: Table,
  { text, checkpoint }: Stored,
  begin: string | null,
  options: SessionOptions,
): Promise<Start> {
  const { source, sink, snapshotMode } = options;
  const stream = (checkpoint?.stream ?? 0) + 1;
  const common = { stored: text, stream, fresh: checkpoint === null };
  const truncate = sink.capabilities.truncate ? { truncate: true } : {};
  if (checkpoint && !table.resyncAsked) {
    const { snapshot } = checkpoint;
    // In append a picture that was cut short has left rows behind; in upsert they are only written again.
    const anew = snapshot !== 'done' && 'picture' in snapshot && table.settings.writeMode !== 'upsert' ? truncate : {};
    return {
      ...common,
      position: {
        offset: begin ?? checkpoint.offset,
        snapshot: snapshot === 'done' ? snapshot : { ...snapshot, ...anew },
      },
      acceptedShapes: new Set(checkpoint.schemaId === null ? [] : [checkpoint.schemaId]),
    };
  }
  const acceptedShapes = new Set<string>();
  if (snapshotMode === 'none' && !table.resyncAsked) {
    return { ...common, position: { offset: begin, snapshot: 'done' }, acceptedShapes };
  }
  let snapshot: SnapshotProgress;
  if (table.settings.writeMode === 'upsert' && source.chunks) {
    const plan = await source.chunks.plan(table.name, RANGES);
    table.estimatedRows = plan.estimatedRows ?? table.estimatedRows;
    snapshot = { ranges: plan.ranges, ...(table.resyncAsked ? truncate : {}) };
  } else {
    snapshot = { picture: true, ...(table.settings.writeMode === 'upsert' && !table.resyncAsked ? {} : truncate) };
  }
  return { ...common, position: { offset: begin, snapshot }, acceptedShapes };
}

function planOf(table: Table, { position, fresh }: Start, sink: SinkPort): string {
  const { snapshot } = position;
  const rows = table.estimatedRows === null ? '' : ` of about ${table.estimatedRows} rows`;
  if (snapshot === 'done') return fresh ? 'stream from now on, without a snapshot' : 'resume from its checkpoint';
  if ('picture' in snapshot) {
    // A picture that is begun anew empties the target first; where the sink cannot, its rows come again.
    const again = sink.capabilities.truncate ? '' : '; its rows may come more than once, for this sink cannot truncate';
    return `snapshot${rows} as one picture${fresh ? '' : ', begun anew'}, then stream${again}`;
  }
  if (fresh || table.resyncAsked) return `snapshot${rows}, then stream`;
  const ranges = snapshot.ranges.length;
  return ranges === 0
    ? 'resume from its checkpoint, behind its snapshot'
    : `resume its snapshot with ${ranges} ranges left`;
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

function cannotTruncate(table: Table): UrutauError {
  return new UrutauError(
    'precondition-failed',
    `resync of ${table.name} begins with a truncate, which this sink cannot do`,
    {
      table: table.name,
      remedy: `Empty the target ${table.settings.target} yourself and run \`urutau-host teardown\` for this table, then start again.`,
    },
  );
}

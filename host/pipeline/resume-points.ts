import { type AssignAnswer, type AssignRequest, asUrutauError, UrutauError } from '@urutau/contract';
import { acceptCheckpoint } from '../checkpoint/accept.ts';
import { type Checkpoint, decodeCheckpoint, type SnapshotProgress } from '../checkpoint/checkpoint.ts';
import { faultPoint } from '../fault-point.ts';
import { QuarantinedKeys } from './quarantine/quarantined-keys.ts';
import type { SessionOptions } from './session.ts';
import type { SinkPort } from './sink/port.ts';
import type { SourcePort } from './source/port.ts';
import { superseded } from './superseded.ts';
import type { Start } from './table/start.ts';
import type { Table } from './table/table.ts';
import { fingerprint } from './table/task.ts';

export interface ResumePoints {
  starts: ReadonlyMap<Table, Start>;
  /** Identity of the source's data; empty for a base source. */
  identity: string;
}

/** Into how many ranges a snapshot is divided. */
const RANGES = 8;

/**
 * Reads the checkpoints and assigns the source's tables from them. Tables that cannot go on are paused one by one. Null
 * when one was paused after it had been assigned: the source would queue changes that nobody reads, so begin again.
 */
export async function resumePoints(options: SessionOptions, signal: AbortSignal): Promise<ResumePoints | null> {
  const { source, sink, tables, writer } = options;
  for (const table of tables) {
    if (!table.wanted || !table.resyncAsked || sink.capabilities.truncate) continue;
    table.resyncAsked = false;
    options.faulted(table, cannotTruncate(table));
  }
  const stored = await storedCheckpoints(options, signal);
  faultPoint('host.checkpoints.read');
  const { assigned, carried } = source.assign
    ? await assign(source.assign, options, stored)
    : { assigned: null, carried: tables.filter(({ wanted }) => wanted) };
  faultPoint('host.tables.assigned');
  const identity = assigned?.source ?? '';
  const starts = new Map<Table, Start>();
  for (const table of carried) {
    try {
      const mine = stored.get(table)!;
      if (mine.checkpoint && !table.resyncAsked) {
        acceptCheckpoint(table.settings.target, mine.checkpoint, {
          writer,
          source: identity,
          shape: fingerprint(table),
        });
      }
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
  return carried.every((table) => table.wanted) ? { starts, identity } : null;
}

interface Stored {
  text: string | null;
  checkpoint: Checkpoint | null;
}

async function storedCheckpoints(
  { sink, tables, faulted, run }: SessionOptions,
  signal: AbortSignal,
): Promise<Map<Table, Stored>> {
  const targets = tables.map(({ settings }) => settings.target);
  const answers = await sink.checkpoints(targets, signal);
  // The destination as a whole refuses: assigned without positions, every table would lose its claim on the log.
  const refusals = [...answers.values()].filter((answer) => answer instanceof UrutauError);
  if (refusals.length > 0 && refusals.length === answers.size) throw refusals[0];
  const stored = new Map<Table, Stored>();
  for (const table of tables) {
    const answer = answers.get(table.settings.target) ?? null;
    try {
      if (answer instanceof UrutauError) throw answer;
      const checkpoint = answer === null ? null : readable(answer, table);
      refuseSuperseded(table, checkpoint, run);
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

/**
 * A run takes a table over from an earlier one once, at its start. One that had stood still for a while and finds the
 * checkpoint of a later run was replaced meanwhile, and must not take the table back.
 */
function refuseSuperseded(table: Table, stored: Checkpoint | null, run: string): void {
  if (stored === null || stored.run === run || table.checkpoint?.run !== run || table.resyncAsked) return;
  throw superseded(table.name, stored.writer);
}

/** Resync is the way out of a checkpoint that cannot be read: then its text is only what has to be replaced. */
function readable(text: string, table: Table): Checkpoint | null {
  try {
    return decodeCheckpoint(text, table.settings.target);
  } catch (error) {
    if (table.resyncAsked) return null;
    throw error;
  }
}

/**
 * ASG-5: a table that fails is paused and asked for again with a mere claim on the log, which needs less than reading
 * its rows; one whose claim fails is left out.
 */
async function assign(
  call: NonNullable<SourcePort['assign']>,
  options: SessionOptions,
  stored: ReadonlyMap<Table, Stored>,
): Promise<{ assigned: AssignAnswer; carried: Table[] }> {
  let tables = options.tables;
  for (;;) {
    const carried = tables.filter(({ wanted }) => wanted);
    try {
      return { assigned: await call(assignRequest(tables, stored)), carried };
    } catch (error) {
      const failures = error instanceof UrutauError ? (error.context.failures ?? []) : [];
      const failed = tables.filter(({ name }) => failures.some(({ table }) => table === name));
      const general = failures.length === 0 || failures.some(({ table }) => table === undefined);
      if (general || failed.length === 0) throw error;
      tables = tables.filter((table) => table.wanted || !failed.includes(table));
      for (const table of failed.filter(({ wanted }) => wanted)) {
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
      const lost = table.state.kind === 'paused' && CLAIM_IS_LOST.has(table.state.reason.code);
      if (lost || (!table.wanted && offset === null)) return [];
      const picture = isPicture(table, checkpoint);
      const hold = !table.wanted || picture;
      // In upsert the first picture's position stays the start (HOST-10), so the log must be kept from there.
      const beginsAnew = table.wanted && picture && table.settings.writeMode !== 'upsert';
      const schemaId = checkpoint?.schemaId ?? null;
      return [
        {
          table: table.name,
          ...(offset === null || beginsAnew ? {} : { fromOffset: offset }),
          ...(schemaId === null ? {} : { schemaId }),
          ...(hold ? { hold } : {}),
        },
      ];
    }),
  };
}

/** Faults after which the source has nothing left to keep for the table. Any other keeps its claim on the log. */
const CLAIM_IS_LOST: ReadonlySet<string> = new Set(['position-lost', 'schema-lost', 'table-not-found']);

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
  const keys = QuarantinedKeys.of(checkpoint ?? {});
  const common = {
    stored: text,
    stream,
    fresh: checkpoint === null,
    resync: table.resyncAsked,
    keys: table.resyncAsked ? QuarantinedKeys.none() : keys,
    voidsLetters: table.resyncAsked && keys.size > 0,
  };
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

/** What a start means, in words. */
export function planOf(table: Table, { position, fresh, resync }: Start, sink: SinkPort): string {
  const { snapshot } = position;
  const rows = table.estimatedRows === null ? '' : ` of about ${table.estimatedRows} rows`;
  if (snapshot === 'done') return fresh ? 'stream from now on, without a snapshot' : 'resume from its checkpoint';
  if ('picture' in snapshot) {
    // A picture that is begun anew empties the target first; where the sink cannot, its rows come again.
    const again = sink.capabilities.truncate ? '' : '; its rows may come more than once, for this sink cannot truncate';
    return `snapshot${rows} as one picture${fresh ? '' : ', begun anew'}, then stream${again}`;
  }
  if (fresh || resync) return `snapshot${rows}, then stream`;
  const ranges = snapshot.ranges.length;
  return ranges === 0
    ? 'resume from its checkpoint, behind its snapshot'
    : `resume its snapshot with ${ranges} range${ranges === 1 ? '' : 's'} left`;
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

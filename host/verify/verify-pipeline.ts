import { asUrutauError, type Failure, UrutauError } from '@urutau/contract';
import { decodeCheckpoint } from '../checkpoint/checkpoint.ts';
import type { FlightClient } from '../flight/client.ts';
import { readDestination } from '../flight/read-destination.ts';
import { readRows } from '../flight/read-rows.ts';
import type { SinkPort } from '../pipeline/sink/port.ts';
import type { SourcePort } from '../pipeline/source/port.ts';
import type { TableSpec } from '../spec/pipeline.ts';
import { awaitPosition } from './await-position.ts';
import { type CompareOptions, compareTable, type TableComparison } from './compare-table.ts';
import { DIFFERENCES } from './judge.ts';

export interface VerifyOptions {
  readonly tables: readonly TableSpec[];
  readonly snapshotMode: 'initial' | 'none';
  /** Drivers of this command alone; those of a running host are left in peace. */
  readonly clients: { readonly source: FlightClient; readonly destination: FlightClient };
  readonly source: SourcePort;
  /** Asked for checkpoints and nothing else. */
  readonly sink: SinkPort;
  /** What a running host says of a table when it is asked to commit it soon; null when none runs here. */
  commit(table: string): Promise<{ state: string; reason: { message: string; remedy: string } | null } | null>;
  readonly limits: CompareOptions;
  /** For which the position of a table may stand still while it is waited for. */
  readonly stillMs: number;
  readonly signal: AbortSignal;
  nowMs(): number;
  pause(ms: number): Promise<void>;
  progress(table: string, text: string): void;
  verified(table: VerifiedTable): void;
}

export interface VerifiedTable {
  readonly source: string;
  readonly target: string;
  /** `unsettled`: nothing differs, but some rows changed at every look. */
  readonly result: 'equal' | 'different' | 'unsettled' | 'not compared';
  /** Null when it was not compared. */
  readonly comparison: TableComparison | null;
  /** Why it was not compared. */
  readonly failure: Failure | null;
  /** What explains differences that are meant to be. */
  readonly note: string | null;
}

/** Compares one table after the other: each takes a slot of the source while it is read. */
export async function verifyPipeline(options: VerifyOptions): Promise<VerifiedTable[]> {
  const verified: VerifiedTable[] = [];
  for (const table of options.tables) {
    const result = await verifyTable(table, options);
    options.verified(result);
    verified.push(result);
  }
  return verified;
}

async function verifyTable(table: TableSpec, options: VerifyOptions): Promise<VerifiedTable> {
  const { source, target } = table;
  const { signal, limits } = options;
  try {
    if (table.writeMode !== 'upsert') throw hasNoState(table);
    await storedPosition(table, options);
    const comparison = await undisturbed(table, () => compareTable(table, sidesOf(table, options), limits));
    const result = resultOf(comparison);
    const note = result === 'different' ? await noteOn(table, comparison, options) : null;
    return { source, target, result, comparison, failure: null, note };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const { message, remedy } = asUrutauError(error);
    const failure = { problem: message, remedy };
    return { source, target, result: 'not compared', comparison: null, failure, note: null };
  }
}

/** A new write stream began while the destination was read: it may have been emptied and filled again meanwhile. */
class BegunAnew extends Error {}

const ATTEMPTS_MAX = 5;

async function undisturbed<T>({ source }: TableSpec, compare: () => Promise<T>): Promise<T> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    try {
      return await compare();
    } catch (error) {
      if (!(error instanceof BegunAnew)) throw error;
    }
  }
  throw new UrutauError('precondition-failed', `the pipeline began ${source} anew whenever its destination was read`, {
    table: source,
    remedy: "Read the host's log: it says why its sessions end.",
  });
}

function resultOf({ counts, left }: TableComparison): VerifiedTable['result'] {
  if (DIFFERENCES.some((kind) => counts[kind] > 0)) return 'different';
  return counts.unsettled > 0 || left !== null ? 'unsettled' : 'equal';
}

async function noteOn(table: TableSpec, { counts }: TableComparison, options: VerifyOptions): Promise<string | null> {
  const { source, onTruncate } = table;
  const { quarantined } = await storedPosition(table, options);
  const notes: string[] = [];
  if (options.snapshotMode === 'none' && counts.missing > 0) {
    notes.push(
      'snapshotMode is none: rows that were there before the pipeline, and have not changed since, are missing',
    );
  }
  if (quarantined > 0) {
    const keys = quarantined === 1 ? '1 key is' : `${quarantined} keys are`;
    notes.push(`${keys} quarantined, and may differ until \`urutau-host table replay ${source}\``);
  }
  if (onTruncate === 'ignore' && counts.extra > 0) {
    notes.push('onTruncate is ignore: rows that a truncate of the source removed stay in the destination, as extra');
  }
  return notes.length === 0 ? null : notes.join('; ');
}

function sidesOf(table: TableSpec, options: VerifyOptions): Parameters<typeof compareTable>[1] {
  const { clients, source, stillMs, signal, nowMs, pause } = options;
  let isMarked = false;
  let stream: number | null = null;
  return {
    read: async (side, { versions }) => {
      const how = { rowVersions: versions, signal };
      if (side === 'source') return readRows(clients.source, table.source, how);
      const picture = await readDestination(clients.destination, table.target, how);
      if (stream === null) return picture;
      return {
        ...picture,
        async *batches() {
          yield* picture.batches();
          if ((await storedPosition(table, options)).stream !== stream) throw new BegunAnew();
        },
      };
    },
    passed: (offset) =>
      awaitPosition({
        table: table.source,
        offset,
        stored: async () => {
          const stored = await storedPosition(table, options);
          stream = stored.stream;
          return stored.offset;
        },
        compare: (a, b) => source.compare(a, b),
        hurry: async () => {
          // An idle log has nothing that would take its reader beyond the offset.
          if (!isMarked) await source.progress?.head();
          isMarked = true;
          const status = await options.commit(table.source);
          if (status?.state === 'paused') throw isPaused(table, status.reason);
          return status !== null;
        },
        stillMs,
        nowMs,
        pause,
      }),
    progress: (text) => options.progress(table.source, text),
  };
}

interface StoredPosition {
  readonly offset: string;
  readonly stream: number;
  /** Keys whose changes go to the dead letters. */
  readonly quarantined: number;
}

/** Throws for a table without a whole copy, whose rows cannot be compared. */
async function storedPosition({ source, target }: TableSpec, { sink, signal }: VerifyOptions): Promise<StoredPosition> {
  const stored = (await sink.checkpoints([target], signal)).get(target) ?? null;
  if (stored instanceof UrutauError) throw stored;
  const checkpoint = stored === null ? null : decodeCheckpoint(stored, target);
  if (checkpoint?.snapshot === 'done' && checkpoint.offset !== null) {
    const { offset, stream, quarantined = [] } = checkpoint;
    return { offset, stream, quarantined: quarantined.length };
  }
  const why =
    checkpoint === null
      ? `the destination has no checkpoint of ${target}: this pipeline has not copied it yet`
      : `the first copy of ${source} is not complete`;
  throw new UrutauError('precondition-failed', why, {
    table: source,
    remedy: 'Let the host run until `urutau-host table status` shows its snapshot as done, then compare.',
  });
}

function hasNoState({ source, writeMode, target }: TableSpec): UrutauError {
  return new UrutauError(
    'precondition-failed',
    `${source} is written in ${writeMode}: ${target} holds one row for each change, and not the state that the source has`,
    { table: source, remedy: 'Name the tables that are to be compared with --tables.' },
  );
}

function isPaused({ source }: TableSpec, reason: { message: string; remedy: string } | null): UrutauError {
  return new UrutauError(
    'precondition-failed',
    `${source} is paused (${reason?.message ?? 'by hand'}), and differs from the source as of now`,
    { table: source, remedy: reason?.remedy ?? `urutau-host table resume ${source}` },
  );
}

import { UrutauError } from '@urutau/contract';
import type { Log } from '../../observe/log.ts';
import type { Batch } from '../batch.ts';
import type { Relay } from '../relay.ts';
import type { SourcePort } from '../source/port.ts';
import type { FeedCursor } from '../table/feed-cursor.ts';
import { truncateBatch } from './truncate.ts';

export interface ChunkRead {
  table: string;
  /** Rows per chunk by the pipeline file; otherwise sized to about a second. */
  rowsWanted: number | undefined;
  source: SourcePort;
  relay: Relay;
  cursor: FeedCursor;
  /** Passes one batch of changes. */
  pass: (batch: Batch) => Promise<void>;
  stopping: () => boolean;
  nowMs: () => number;
  log: Log;
}

const ROWS_FIRST = 100_000;
const ROWS_MIN = 1_000;
const ROWS_MAX = 1_000_000;
const CHUNK_MS = 1_000;
/** A stream without a batch for so long has nothing to say at the moment. */
const DRY_MS = 5;
const HEAD_POLL_MS = 100;

/**
 * The snapshot of an upsert table between its changes (CHK-3 to CHK-5). The gate: no change is passed while a chunk
 * is read; `notBefore` is the last change that was passed, so the chunk's rows are at least as new, and every later
 * change follows them. Then the changes have their turn, for as long as the chunk took, and so on. Returns when the
 * changes have passed the head of the log as of the last chunk: from there on the table is *streaming*.
 */
export async function readChunks(options: ChunkRead): Promise<void> {
  const { relay, cursor, source, table, stopping, nowMs } = options;
  await truncateFirst(options);
  let rows = options.rowsWanted ?? ROWS_FIRST;
  for (let ranges = rangesLeft(relay); ranges.length > 0 && !stopping(); ranges = rangesLeft(relay)) {
    const startedMs = nowMs();
    const count = await readChunk(options, rows);
    const tookMs = Math.max(1, nowMs() - startedMs);
    if (options.rowsWanted === undefined && count > 0) rows = resized(count, tookMs);
    await passWhatIsThere(options, tookMs);
  }
  if (stopping()) return;
  const head = await headOf(source, relay);
  if (head !== null) relay.advance({ ...relay.position, snapshot: { ranges: [], head } });
  while (!stopping() && head !== null && !(await hasPassed(source, relay, head))) {
    const batch = await cursor.nextWithin(HEAD_POLL_MS);
    if (batch === null) throw ended(table);
    if (batch !== undefined) await options.pass(batch);
  }
  if (stopping()) return;
  relay.advance({ ...relay.position, snapshot: 'done' });
  await relay.commitNow();
}

async function truncateFirst({ relay, cursor }: ChunkRead): Promise<void> {
  const { snapshot } = relay.position;
  if (snapshot === 'done' || !('ranges' in snapshot) || !snapshot.truncate) return;
  const { truncate: _done, ...rest } = snapshot;
  await relay.send(truncateBatch(cursor.shape), { ...relay.position, snapshot: rest });
}

/** Reads one chunk of the first range and relays it. Answers how many rows it had. */
async function readChunk({ table, source, relay, log, stopping }: ChunkRead, rows: number): Promise<number> {
  const [range, ...others] = rangesLeft(relay);
  let feed: Awaited<ReturnType<NonNullable<SourcePort['chunks']>['read']>>;
  try {
    feed = await source.chunks!.read(table, range!, { rows, notBefore: relay.position.offset! });
  } catch (error) {
    if (!(error instanceof UrutauError) || error.code !== 'plan-lost') throw error;
    log.warn('the table was rewritten during its snapshot; it is planned anew', { table });
    const { ranges } = await source.chunks!.plan(table, 1);
    relay.advance({ ...relay.position, snapshot: { ranges } });
    return 0;
  }
  let count = 0;
  try {
    for (let batch = await feed.next(); batch !== null && !stopping(); batch = await feed.next()) {
      const { next } = batch.envelope;
      if (next === undefined) {
        throw new UrutauError(
          'protocol-violation',
          `a chunk of ${table} does not say what is left of its range (CHK-6)`,
          { table },
        );
      }
      const ranges = next === null ? others : [next, ...others];
      const position = { ...relay.position, snapshot: { ranges } };
      count += batch.envelope.rows;
      if (batch.envelope.rows > 0) await relay.send(withoutOffset(batch), position);
      else relay.advance(position);
    }
    return count;
  } finally {
    feed.close();
  }
}

/** Column 3 of a chunk's rows is an ordinal; the table's resume point does not move by a chunk. */
function withoutOffset(batch: Batch): Batch {
  const { offset: _offset, next: _next, ...envelope } = batch.envelope;
  return { ...batch, envelope: { ...envelope, phase: 'snapshot' } };
}

/** Changes have their turn until there is none for a moment, at most for `budgetMs`. */
async function passWhatIsThere({ cursor, pass, stopping, nowMs, table }: ChunkRead, budgetMs: number): Promise<void> {
  const untilMs = nowMs() + budgetMs;
  while (!stopping() && nowMs() < untilMs) {
    const batch = await cursor.nextWithin(DRY_MS);
    if (batch === undefined) return;
    if (batch === null) throw ended(table);
    await pass(batch);
  }
}

async function headOf(source: SourcePort, relay: Relay): Promise<string | null> {
  const { snapshot } = relay.position;
  if (snapshot !== 'done' && 'head' in snapshot && snapshot.head !== undefined) return snapshot.head;
  return source.progress ? source.progress.head() : null;
}

async function hasPassed(source: SourcePort, relay: Relay, head: string): Promise<boolean> {
  const order = await source.compare(relay.position.offset!, head);
  return order === 0 || order === 1;
}

function rangesLeft({ position: { snapshot } }: Relay): string[] {
  return snapshot !== 'done' && 'ranges' in snapshot ? snapshot.ranges : [];
}

function resized(count: number, tookMs: number): number {
  return Math.round(Math.min(ROWS_MAX, Math.max(ROWS_MIN, (count / tookMs) * CHUNK_MS)));
}

function ended(table: string): UrutauError {
  return new UrutauError('protocol-violation', `the changes of ${table} ended by themselves (CHG-1)`, { table });
}

import { rowSchema, type TableShape, UrutauError } from '@urutau/contract';
import { faultPoint } from '../../fault-point.ts';
import type { Log } from '../../observe/log.ts';
import type { Batch } from '../batch.ts';
import type { Relay } from '../relay.ts';
import type { Feed, SourcePort } from '../source/port.ts';
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
const HEAD_POLL_MS = 25;

/**
 * The snapshot of an upsert table between its changes (CHK-3 to CHK-7). The gate: no change is passed while a chunk
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
    const count = await readSomeChunks(options, rows);
    const tookMs = Math.max(1, nowMs() - startedMs);
    if (options.rowsWanted === undefined && count > 0) rows = resized(count / CHUNKS_AT_ONCE, tookMs);
    await passWhatIsThere(options, tookMs);
  }
  if (stopping()) return;
  const head = await headOf(source, relay);
  faultPoint('host.head.taken');
  if (head !== null) relay.advance({ ...relay.position, snapshot: { ranges: [], head } });
  while (!stopping() && head !== null && !(await hasPassed(source, relay, head))) {
    const batch = await cursor.nextWithin(HEAD_POLL_MS);
    if (batch === null) throw ended(table);
    if (batch !== undefined) await options.pass(batch);
  }
  if (stopping()) return;
  faultPoint('host.snapshot.done');
  relay.advance({ ...relay.position, snapshot: 'done' });
  await relay.commitNow();
}

async function truncateFirst({ relay, cursor }: ChunkRead): Promise<void> {
  const { snapshot } = relay.position;
  if (snapshot === 'done' || !('ranges' in snapshot) || !snapshot.truncate) return;
  const { truncate: _done, ...rest } = snapshot;
  await relay.send(truncateBatch(cursor.shape), { ...relay.position, snapshot: rest });
}

/** So many chunks are read behind one gate: while one is relayed the source begins with the next. */
const CHUNKS_AT_ONCE = 2;

/** Reads a chunk of each of the first ranges and relays them one after the other. Answers how many rows they had. */
async function readSomeChunks(options: ChunkRead, rows: number): Promise<number> {
  const { table, source, relay, log } = options;
  const chosen = rangesLeft(relay).slice(0, CHUNKS_AT_ONCE);
  const notBefore = relay.position.offset!;
  faultPoint('host.chunk.gated');
  const opened = await Promise.allSettled(
    chosen.map((range) => source.chunks!.read(table, range, { rows, notBefore })),
  );
  const feeds = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  try {
    const failed = opened.find(({ status }) => status === 'rejected');
    if (failed) throw (failed as PromiseRejectedResult).reason;
    for (const { shape } of feeds) checkSameShape(options, shape);
    let count = 0;
    // What is left of a range that was read stands in its place, so the next one's place depends on it.
    let place = 0;
    for (const feed of feeds) {
      const { rows: read, isRangeDone } = await relayChunk(options, feed, place);
      count += read;
      if (!isRangeDone) place++;
      faultPoint('host.chunk.relayed');
    }
    return count;
  } catch (error) {
    if (!(error instanceof UrutauError) || error.code !== 'plan-lost') throw error;
    log.warn('the table was rewritten during its snapshot; it is planned anew', { table });
    const { ranges } = await source.chunks!.plan(table, 1);
    relay.advance({ ...relay.position, snapshot: { ranges } });
    return 0;
  } finally {
    for (const feed of feeds) feed.close();
  }
}

/** Relays one chunk of the range at `place`; each batch leaves there what it has not brought. */
async function relayChunk(
  { table, relay, stopping }: ChunkRead,
  feed: Feed,
  place: number,
): Promise<{ rows: number; isRangeDone: boolean }> {
  let rows = 0;
  let isRangeDone: boolean | null = null;
  for (let batch = await feed.next(); batch !== null && !stopping(); batch = await feed.next()) {
    const { next } = batch.envelope;
    if (next === undefined || isRangeDone === true) throw unclear(table);
    const ranges = rangesLeft(relay).toSpliced(place, 1, ...(next === null ? [] : [next]));
    isRangeDone = next === null;
    const position = { ...relay.position, snapshot: { ranges } };
    rows += batch.envelope.rows;
    if (batch.envelope.rows > 0) await relay.send(withoutOffset(batch), position);
    else relay.advance(position);
  }
  if (isRangeDone === null && !stopping()) throw unclear(table);
  return { rows, isRangeDone: isRangeDone === true };
}

/** Rows of another shape do not fit the write stream. Without an offset the error is the table's, not the stream's end. */
function checkSameShape({ table, cursor }: ChunkRead, shape: TableShape): void {
  const isSame =
    shape.schemaId === undefined
      ? String(rowSchema(shape)) === String(rowSchema(cursor.shape))
      : shape.schemaId === cursor.shape.schemaId;
  if (isSame) return;
  throw new UrutauError('schema-changed', `the columns of ${table} changed at the source during its snapshot`, {
    table,
    remedy: 'Make the target fit and run `urutau-host table resume`; or `table resync`, which reads the table anew.',
  });
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

function unclear(table: string): UrutauError {
  return new UrutauError('protocol-violation', `a chunk of ${table} does not say what is left of its range (CHK-5)`, {
    table,
  });
}

function ended(table: string): UrutauError {
  return new UrutauError('protocol-violation', `the changes of ${table} ended by themselves (CHG-1)`, { table });
}

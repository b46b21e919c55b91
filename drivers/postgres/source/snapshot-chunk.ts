import { ChangeBatchBuilder, type EncodedBatch, faultPoint, type SourceBatch, UrutauError } from '@urutau/sdk';
import { quoteName } from '../connection.ts';
import type { Lsn } from '../lsn.ts';
import { OffsetWriter } from '../offset.ts';
import { BatchPipe } from './batch-pipe.ts';
import { loadTables } from './catalog.ts';
import type { Clock } from './clock.ts';
import { type Chunk, encodeRange, firstChunk, type PageRange, storageOf } from './page-range.ts';
import type { ReadView } from './read-view.ts';
import { type RowShape, shapeOfTable } from './row-shape.ts';
import type { SideConnections } from './side-connections.ts';
import { loadLeaves } from './storage.ts';
import { copyRows, type RowTarget } from './table-rows.ts';
import type { Wire } from './wire.ts';

export interface ChunkOptions {
  table: string;
  rowShape: RowShape;
  range: PageRange;
  /** About so many rows. */
  rows: number;
  readView: ReadView;
  side: SideConnections;
  clock: Clock;
}

/**
 * Reads the first pages of a range in one snapshot that shows every transaction decoded before it. Rows are read page by
 * page and do not tell where they were, so each batch but the last names the whole range as what is left: reading rows
 * twice does no harm.
 */
export async function* readChunk(options: ChunkOptions, signal: AbortSignal): AsyncGenerator<SourceBatch, void> {
  const { table, rowShape, range, side } = options;
  const wire = await side.begin();
  const abort = (): void => void wire.close();
  signal.addEventListener('abort', abort);
  try {
    const chunk = await openChunk(wire, options);
    faultPoint('source.chunk.opened');
    const pipe = new BatchPipe<EncodedBatch>({ waitingMax: 2, flow: wire });
    if (chunk) {
      const { from, target } = { from: rowsOf(chunk), target: batchesInto(pipe, rowShape) };
      copyRows({ wire, table, rowShape, from, target }).then(
        () => target.end(),
        (error) => pipe.end(error),
      );
    } else {
      pipe.end();
    }
    let last: EncodedBatch | null = null;
    for await (const batch of pipe) {
      if (last) yield { batch: last, envelope: { next: encodeRange(range), phase: 'snapshot' } };
      last = batch;
    }
    const rest = chunk?.rest ?? null;
    yield { batch: last, envelope: { next: rest && encodeRange(rest), phase: 'snapshot' } };
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await side.end(wire);
  }
}

interface OpenChunk extends Chunk {
  leafName: string;
}

/** Null when the table has no storage: a partitioned one without partitions. */
async function openChunk(
  wire: Wire,
  { table, rowShape, range, rows, readView, clock }: ChunkOptions,
): Promise<OpenChunk | null> {
  const { mark } = readView;
  for (let delayMs = 2; ; delayMs = Math.min(2 * delayMs, 100)) {
    // The lock comes before the snapshot: a rewrite that has committed by then is seen, and none can begin after.
    await wire.query(
      `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE ${quoteName(table)} IN ACCESS SHARE MODE`,
    );
    const [row] = await wire.query('SELECT pg_current_snapshot()::text');
    if (readView.shownBy(row![0]!, mark)) break;
    await wire.query('ROLLBACK');
    await clock.sleep(delayMs);
  }
  const query = (sql: string): Promise<(string | null)[][]> => wire.query(sql);
  const leaves = await loadLeaves(query, table);
  if (storageOf(leaves) !== range.storage) {
    throw new UrutauError('plan-lost', `${table}: its storage is another one than its ranges were planned for`, {
      table,
    });
  }
  const catalog = (await loadTables(query, [table])).get(table);
  if (!catalog || shapeOfTable(catalog).shape.schemaId !== rowShape.shape.schemaId) {
    throw new UrutauError('schema-changed', `${table}: its columns or its key changed before the chunk was read`, {
      table,
    });
  }
  if (leaves.length === 0) return null;
  const chunk = firstChunk(range, leaves, rows);
  return { ...chunk, leafName: leaves[chunk.leaf]!.name };
}

function rowsOf({ leafName, fromPage, toPage }: OpenChunk): string {
  const upper = toPage === null ? '' : ` AND ctid < '(${toPage},0)'`;
  return `ONLY ${leafName} WHERE ctid >= '(${fromPage},0)'${upper}`;
}

function batchesInto(pipe: BatchPipe<EncodedBatch>, { shape }: RowShape): RowTarget & { end(): void } {
  const builder = new ChangeBatchBuilder(shape);
  const ordinals = new OffsetWriter();
  ordinals.moveTo({ lsn: 0n as Lsn, index: 0n });
  let bytes = 0;
  const cut = (): void => {
    bytes = 0;
    if (builder.rows > 0) pipe.push(builder.finish());
  };
  return {
    builders: builder.after,
    comes(more) {
      if (bytes + more > BATCH_BYTES || builder.rows >= BATCH_ROWS_MAX) cut();
      bytes += more;
    },
    rowDone: () => builder.close('c', ordinals.next(), null),
    end() {
      cut();
      pipe.end();
    },
  };
}

const BATCH_BYTES = 1 << 20;
const BATCH_ROWS_MAX = 65_536;

import { randomBytes } from 'node:crypto';
import { builderFor, type EncodedBatch, encodeColumns, type SourceBatch, UrutauError } from '@urutau/sdk';
import pg from 'pg';
import { quoteIdent, quoteName } from '../connection.ts';
import { parseLsn } from '../lsn.ts';
import { encodeOffsetBase64 } from '../offset.ts';
import { BatchPipe } from './batch-pipe.ts';
import { storageOf } from './page-range.ts';
import type { RowShape } from './row-shape.ts';
import type { SideConnections } from './side-connections.ts';
import { PLUGIN } from './slot.ts';
import { loadLeaves } from './storage.ts';
import { copyRows, type RowTarget } from './table-rows.ts';
import { Wire } from './wire.ts';

/** One picture of the database, and the place in the log where it was taken. */
export interface ExportedSnapshot {
  /** All transactions that committed before it are in the picture, and no others. */
  endOffset: string;
  name: string;
  /** Ends the picture and its temporary slot. */
  close(): Promise<void>;
}

/** A temporary slot is the one thing that gives a snapshot together with its exact place in the log. */
export async function exportSnapshot(config: pg.ClientConfig): Promise<ExportedSnapshot> {
  const wire = await Wire.connect(config, { replication: true });
  try {
    const slot = quoteIdent(`urutau_snapshot_${randomBytes(8).toString('hex')}`);
    const [row] = await wire.query(`CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL ${PLUGIN} EXPORT_SNAPSHOT`);
    const [, consistentPoint, name] = row!;
    return {
      endOffset: encodeOffsetBase64({ lsn: parseLsn(consistentPoint!), index: 0n }),
      name: name!,
      close: () => wire.close(),
    };
  } catch (error) {
    await wire.close();
    throw withoutRoom(error);
  }
}

/** Each picture takes a slot beside that of the pipeline. */
function withoutRoom(error: unknown): unknown {
  const { code } = ((error as Error).cause ?? {}) as { code?: string };
  if (!(error instanceof UrutauError) || code !== CONFIGURATION_LIMIT) return error;
  return new UrutauError(error.code, error.message, {
    cause: error,
    remedy: 'Raise max_replication_slots: a consistent picture of a table takes one slot more while it is read.',
  });
}

/** SQLSTATE of "all replication slots are in use". */
const CONFIGURATION_LIMIT = '53400';

export interface SnapshotOptions {
  table: string;
  /** An ordinary table's children are not part of it; a partitioned one's are. */
  partitioned: boolean;
  rowShape: RowShape;
  /** Null reads the table as it is when the read begins, in one consistent view too. */
  picture: {
    snapshot: ExportedSnapshot;
    /** As it was before the picture was taken. */
    storage: string;
  } | null;
  side: SideConnections;
}

/** All rows of a table as they are in the picture. */
export async function* readSnapshot(options: SnapshotOptions, signal: AbortSignal): AsyncGenerator<SourceBatch, void> {
  const { table, partitioned, rowShape, picture, side } = options;
  const wire = await side.begin();
  const abort = (): void => void wire.close();
  signal.addEventListener('abort', abort);
  try {
    // The lock takes no view of its own: without a picture the rows are as they are once it is held.
    const view = picture === null ? '' : `SET TRANSACTION SNAPSHOT ${pg.escapeLiteral(picture.snapshot.name)};`;
    await wire.query(
      `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${view} LOCK TABLE ${quoteName(table)} IN ACCESS SHARE MODE`,
    );
    // An older picture sees nothing of a table that was rewritten since.
    if (picture !== null && storageOf(await loadLeaves((sql) => wire.query(sql), table)) !== picture.storage) {
      throw new UrutauError('source-unavailable', `${table}: it was rewritten while its snapshot began`, {
        table,
        remedy: 'The host begins the snapshot again by itself.',
      });
    }
    const pipe = new BatchPipe<EncodedBatch>({ waitingMax: 2, flow: wire });
    const target = rowBatchesInto(pipe, rowShape);
    copyRows({ wire, table, rowShape, from: `${partitioned ? '' : 'ONLY '}${quoteName(table)}`, target }).then(
      () => target.end(),
      (error) => pipe.end(error),
    );
    for await (const batch of pipe) yield { batch, envelope: { phase: 'snapshot' } };
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await side.end(wire);
    await picture?.snapshot.close();
  }
}

function rowBatchesInto(pipe: BatchPipe<EncodedBatch>, { shape }: RowShape): RowTarget & { end(): void } {
  const builders = shape.fields.map(builderFor);
  let rows = 0;
  let bytes = 0;
  const cut = (): void => {
    if (rows > 0) {
      const columns = builders.map((builder) => builder.finish());
      pipe.push({ ...encodeColumns(columns, rows), ops: { c: 0, u: 0, d: 0 } });
    }
    rows = 0;
    bytes = 0;
  };
  return {
    builders,
    comes(more) {
      if (bytes + more > BATCH_BYTES || rows >= BATCH_ROWS_MAX) cut();
      bytes += more;
    },
    rowDone: () => void rows++,
    end() {
      cut();
      pipe.end();
    },
  };
}

const BATCH_BYTES = 1 << 20;
const BATCH_ROWS_MAX = 65_536;

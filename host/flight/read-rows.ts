import { asIpcStream, decodeSchema, encodeSchemaHeader, type ReadMetadata, UrutauError } from '@urutau/contract';
import { type RecordBatch, type Schema, tableFromIPC } from 'apache-arrow';
import type { FlightClient } from './client.ts';

/** A whole table as it was at one moment. */
export interface RowPicture {
  /** Of the rows themselves; with the metadata of SCH-2 and SCH-3 where the driver sends them. */
  readonly schema: Schema;
  /** Where changes would go on, base64; empty for what has no changes (EXT-8). */
  readonly endOffset: string;
  /** Rows that it may have, where the driver says so. */
  readonly estimatedRows: number | null;
  /** Can be read once. It holds one batch at a time; the driver waits while nobody takes the next. */
  batches(): AsyncGenerator<RecordBatch, void>;
}

/**
 * Takes a snapshot of a table and decodes its rows: for the host's own eyes, such as to compare or to read back what a sink
 * wrote. Rows on their way to a sink pass as bytes and never come here. Ends with `signal`.
 */
export async function readRows(
  client: FlightClient,
  table: string,
  { rowVersions = false, signal }: { /** SCH-10 */ rowVersions?: boolean; signal?: AbortSignal | undefined } = {},
): Promise<RowPicture> {
  const info = await client.getFlightInfo(
    { table, mode: 'snapshot', ...(rowVersions ? { rowVersions } : {}) },
    { signal },
  );
  const schema = decodeSchema(info.schema);
  const header = encodeSchemaHeader(schema);
  return {
    schema,
    endOffset: endOffsetOf(info.appMetadata, table),
    estimatedRows: info.totalRecords === undefined || info.totalRecords < 0n ? null : Number(info.totalRecords),
    async *batches() {
      const stream = client.read(info, table, { signal });
      try {
        const sent = await stream.schema();
        if (String(sent) !== String(schema)) {
          const problem = `the stream of ${table} has another schema than its FlightInfo announced`;
          throw new UrutauError('protocol-violation', problem, { table });
        }
        for (;;) {
          const received = await stream.next();
          if (received === null) return;
          if (received.header.length === 0) continue;
          const bytes = asIpcStream(header, received.header, Buffer.concat(received.body));
          for (const batch of tableFromIPC(bytes).batches) if (batch.numRows > 0) yield batch;
        }
      } finally {
        stream.close();
      }
    },
  };
}

function endOffsetOf(appMetadata: Uint8Array, table: string): string {
  let metadata: ReadMetadata = {};
  try {
    metadata = JSON.parse(Buffer.from(appMetadata).toString());
  } catch {
    // Falls through: what is no JSON names no endOffset.
  }
  if (typeof metadata.endOffset === 'string') return metadata.endOffset;
  throw new UrutauError('protocol-violation', `the snapshot of ${table} names no endOffset (INFO-6)`, { table });
}

import {
  ACTION,
  type CommitRequest,
  changeSchema,
  encodeEnvelope,
  encodeFlightData,
  type TableShape,
} from '@urutau/contract';
import type { FlightClient } from '../../flight/client.ts';
import { emptyBatchHeader } from './empty-batch.ts';
import type { TableSink } from './port.ts';

/** A write stream of a sink with `commit/1`: cuts travel in band, commits beside the stream. */
export function committingSink(
  client: FlightClient,
  writer: string,
  table: string,
  stream: number,
  shape: TableShape,
): TableSink {
  const schema = changeSchema(shape);
  const cutHeader = emptyBatchHeader(schema);
  // The stream is opened with its first message: opening it may not come before the commit that raises its number.
  let put: ReturnType<FlightClient['write']> | null = null;
  let seq = 0;
  let order: Promise<void> = Promise.resolve();
  let closed = false;

  const sink: TableSink = {
    onFailure: () => {},
    get seq() {
      return seq;
    },
    write,
    commit,
    close,
  };
  return sink;

  function write({ envelope, header, body }: Parameters<TableSink['write']>[0]): Promise<void> {
    return send({ ...envelope, seq: ++seq }, header, body);
  }

  async function commit(checkpoint: string, previous: string | null): Promise<void> {
    // Rows may be written while the cut is on its way; they are not of this commit.
    const through = seq === 0 ? 0 : ++seq;
    if (through > 0) await send({ seq: through, rows: 0, cut: true }, cutHeader, []);
    const request: CommitRequest = { writer, table, stream, through, checkpoint, previous };
    await client.action(ACTION.commit, request);
  }

  function send(
    envelope: Parameters<typeof encodeEnvelope>[0],
    header: Uint8Array,
    body: readonly Uint8Array[],
  ): Promise<void> {
    const message = encodeFlightData({ dataHeader: header, appMetadata: encodeEnvelope(envelope), body });
    order = order.then(() => opened().write(message));
    order.catch(() => {}); // Whoever awaits the write or the next one is told.
    return order;
  }

  function opened(): ReturnType<FlightClient['write']> {
    if (put === null) {
      const opening = client.write({ mode: 'write', table, stream }, schema);
      void opening.over.then(() => {
        if (!closed && opening.failure) sink.onFailure(opening.failure);
      });
      put = opening;
    }
    return put;
  }

  function close(): void {
    closed = true;
    put?.cancel();
  }
}

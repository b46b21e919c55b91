import { ACTION, changeSchema, encodeEnvelope, encodeFlightData, type TableShape } from '@urutau/contract';
import type { CheckpointStore } from '../../checkpoint/store.ts';
import { faultPoint } from '../../fault-point.ts';
import type { FlightClient } from '../../flight/client.ts';
import type { TableSink } from './port.ts';

/**
 * A write stream of a sink of the base (HOST-9): a commit ends the stream, waits for its status, flushes, and only
 * then writes the position to the host's own store. A crash in between writes the rows again.
 */
export function flushingSink(
  client: FlightClient,
  writer: string,
  table: string,
  shape: TableShape,
  store: CheckpointStore,
): TableSink {
  const schema = changeSchema(shape);
  let put: ReturnType<FlightClient['write']> | null = null;
  let seq = 0;
  let order: Promise<void> = Promise.resolve();
  let closed = false;

  const sink: TableSink = {
    onFailure: () => {},
    get seq() {
      return seq;
    },
    write: ({ envelope, header, body }) =>
      inOrder(async () => {
        const appMetadata = encodeEnvelope({ ...envelope, seq: ++seq });
        await opened().write(encodeFlightData({ dataHeader: header, appMetadata, body }));
      }),
    commit: (checkpoint) =>
      inOrder(async () => {
        if (put !== null) {
          const ending = put;
          put = null;
          seq = 0;
          await ending.end();
          await client.actionBytes(ACTION.flush);
          faultPoint('host.flush.answered');
        }
        store.write(writer, table, checkpoint);
      }),
    close: () => {
      closed = true;
      put?.cancel();
    },
  };
  return sink;

  function inOrder(step: () => Promise<void>): Promise<void> {
    order = order.then(step);
    order.catch(() => {}); // Whoever awaits this step or the next one is told.
    return order;
  }

  function opened(): ReturnType<FlightClient['write']> {
    if (put === null) {
      const opening = client.write({ mode: 'write', table }, schema);
      void opening.over.then(() => {
        if (!closed && put === opening && opening.failure) sink.onFailure(opening.failure);
      });
      put = opening;
    }
    return put;
  }
}

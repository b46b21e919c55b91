import { setImmediate } from 'node:timers/promises';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { TableShape } from '@urutau/contract';
import {
  decodeEnvelope,
  decodeSchemaHeader,
  type Envelope,
  type FlightData,
  isRecordBatchHeader,
  isSchemaHeader,
  shapeOfChanges,
  UrutauError,
  type WriteDescriptor,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { ChangeBatch } from '../columns/change-batch-reader.ts';
import type { SinkDriver } from '../define.ts';
import { faultPoint, faultPointOfStream } from '../fault-point.ts';
import { halfClose } from './transport.ts';
import type { WriteStreams } from './write-streams.ts';

const TURNS = 10;

type Call = ServerDuplexStream<FlightData, Uint8Array>;

/** Takes one write stream (DoPut): gives each batch to the driver's writer and reads no further until it is taken. */
export async function streamIn(call: Call, driver: SinkDriver, streams: WriteStreams): Promise<void> {
  // By itself the iterator destroys the call at its end, and a call that is destroyed sends no status.
  const messages = call.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]();
  const first = await messages.next();
  if (first.done) return;
  const { descriptor, schema, shape } = readStart(first.value as FlightData);
  const stream = await streams.open(descriptor, () => driver.openWriter(descriptor, shape));
  try {
    let seq = 0;
    for (;;) {
      const { done, value } = await messages.next();
      if (done) break;
      const { envelope, batch } = readMessage(value as FlightData, schema, shape, seq);
      seq = envelope.seq;
      stream.accept();
      await faultPointOfStream('sink.batch.received', () => halfClose(call));
      await stream.writer.write(batch, envelope);
      faultPoint('sink.batch.staged');
      stream.received(seq);
    }
    stream.accept();
    if (await wasBrokenOff(call)) throw new UrutauError('stream-lost', 'the host broke the write stream off');
    await stream.writer.end();
    stream.ended();
  } catch (error) {
    await stream.broke(error);
    throw error;
  }
}

/**
 * A call that the host broke off ends like one that it closed, and shows the difference some turns of the loop later.
 * Where that should be too few, the rows are kept until a newer stream replaces this one; no commit can mistake them.
 */
async function wasBrokenOff(call: Call): Promise<boolean> {
  for (let turn = 0; turn < TURNS && !call.cancelled; turn++) await setImmediate();
  return call.cancelled;
}

function readStart(data: FlightData): { descriptor: WriteDescriptor; schema: Schema; shape: TableShape } {
  if (data.descriptor === undefined) {
    throw new UrutauError('protocol-violation', 'the first message of DoPut carries no descriptor');
  }
  const descriptor = parseDescriptor(data.descriptor.cmd);
  if (data.dataHeader.length === 0 || !isSchemaHeader(data.dataHeader)) {
    throw new UrutauError('protocol-violation', 'the first message of DoPut carries no schema', {
      table: descriptor.table,
    });
  }
  const schema = decodeSchemaHeader(data.dataHeader);
  return { descriptor, schema, shape: shapeOfChanges(schema, descriptor.table) };
}

function parseDescriptor(cmd: Uint8Array): WriteDescriptor {
  let descriptor: WriteDescriptor;
  try {
    descriptor = JSON.parse(Buffer.from(cmd).toString());
  } catch (cause) {
    throw new UrutauError('protocol-violation', 'the descriptor of DoPut is not JSON', { cause });
  }
  if (descriptor.mode !== 'write' || typeof descriptor.table !== 'string') {
    throw new UrutauError('protocol-violation', 'expected a descriptor {"mode":"write","table":…}');
  }
  return descriptor;
}

function readMessage(
  data: FlightData,
  schema: Schema,
  shape: TableShape,
  lastSeq: number,
): { envelope: Envelope; batch: ChangeBatch | null } {
  if (data.dataHeader.length > 0 && !isRecordBatchHeader(data.dataHeader)) {
    throw new UrutauError('protocol-violation', 'the schema or a dictionary came in the middle of a stream (CHG-1)');
  }
  // A host that knows no envelope is taken as sending plain batches, each its own number.
  const envelope = decodeEnvelope(data.appMetadata) ?? { seq: lastSeq + 1, rows: -1 };
  if (envelope.seq !== lastSeq + 1) {
    throw new UrutauError('protocol-violation', `expected batch ${lastSeq + 1} of the stream; came ${envelope.seq}`);
  }
  if (envelope.rows === 0 || data.dataHeader.length === 0) return { envelope, batch: null };
  return { envelope, batch: new ChangeBatch(schema, shape, envelope, data.dataHeader, data.dataBody) };
}

import type { ServerWritableStream } from '@grpc/grpc-js';
import {
  changeSchema,
  encodeEnvelope,
  encodeFlightData,
  encodeSchemaHeader,
  type FaultPoint,
  LIMIT,
  type PiecewiseMessage,
  type ReadDescriptor,
  rowSchema,
  type TableShape,
  UrutauError,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { builderFor } from '../columns/builders.ts';
import { ChangeBatchBuilder, type EncodedBatch, encodeColumns } from '../columns/change-batch-builder.ts';
import type { Read } from '../define.ts';
import { faultPointOfStream } from '../fault-point.ts';
import { halfClose } from './transport.ts';

type Mode = ReadDescriptor['mode'];
type Call = ServerWritableStream<Uint8Array, PiecewiseMessage>;

/** Messages handed to the transport and not yet taken by it; HTTP/2 flow control decides when it takes them. */
const WRITES_IN_FLIGHT_MAX = 2;

/** Sends one read (DoGet): the schema, then batches with their envelopes, only as fast as the host reads. */
export async function streamOut(call: Call, read: Read, mode: Mode): Promise<void> {
  const closed = new AbortController();
  call.on('cancelled', () => closed.abort());
  if (call.cancelled) closed.abort();
  const out = new BoundedWriter(call, closed.signal);
  const schema = schemaOf(read.shape, mode);
  await out.write(encodeFlightData({ dataHeader: encodeSchemaHeader(schema), body: [] }));
  const emptyBatch = lazily(() => emptyBatchOf(read.shape, mode));
  let seq = 0;
  for await (const { batch, envelope } of read.open(closed.signal)) {
    if (closed.signal.aborted) break;
    const { header, body, rows, ops } = batch ?? emptyBatch();
    const appMetadata = encodeEnvelope({ seq: ++seq, rows, ...envelope, ...(rows > 0 ? { ops } : {}) });
    const message = encodeFlightData({ dataHeader: header, appMetadata, body });
    if (message.length > LIMIT.messageBytesMax) throw tooLarge(message.length, rows);
    await out.write(message);
    await faultPointOfStream(SENT[mode], async () => {
      await out.flushed();
      halfClose(call);
    });
  }
  await out.flushed();
}

/** A snapshot is rows alone; chunks and changes are change records. */
export function schemaOf(shape: TableShape, mode: Mode): Schema {
  return mode === 'snapshot' ? rowSchema(shape) : changeSchema(shape);
}

const SENT = {
  snapshot: 'source.picture.sent',
  chunk: 'source.chunk.sent',
  changes: 'source.changes.sent',
} as const satisfies Record<Mode, FaultPoint>;

class BoundedWriter {
  readonly #call: Call;
  readonly #signal: AbortSignal;
  #inFlight = 0;
  /** Whoever waits for the transport; one at most, since the writes of a stream come one after the other. */
  #wake: () => void = () => {};

  constructor(call: Call, signal: AbortSignal) {
    this.#call = call;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  async write(message: PiecewiseMessage): Promise<void> {
    await this.#until(WRITES_IN_FLIGHT_MAX - 1);
    if (this.#signal.aborted) return;
    this.#inFlight++;
    this.#call.write(message, () => {
      this.#inFlight--;
      this.#wake();
    });
  }

  flushed(): Promise<void> {
    return this.#until(0);
  }

  async #until(inFlightMax: number): Promise<void> {
    while (this.#inFlight > inFlightMax && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function emptyBatchOf(shape: TableShape, mode: Mode): EncodedBatch {
  if (mode !== 'snapshot') return new ChangeBatchBuilder(shape).finish();
  const columns = shape.fields.map((field) => builderFor(field).finish());
  return { ...encodeColumns(columns, 0), ops: {} };
}

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function tooLarge(bytes: number, rows: number): UrutauError {
  return new UrutauError(
    'row-too-large',
    `a batch of ${rows} row${rows === 1 ? '' : 's'} has ${bytes} bytes, over the message limit of ${LIMIT.messageBytesMax}`,
  );
}

import type { ClientReadableStream } from '@grpc/grpc-js';
import {
  decodeEnvelope,
  decodeFlightData,
  decodeSchemaHeader,
  type Envelope,
  type FlightData,
  isRecordBatchHeader,
  isSchemaHeader,
  UrutauError,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { fromServiceError } from './service-error.ts';

/** One record batch as it came: its envelope parsed, its header and body untouched. */
export interface ReceivedBatch {
  /** Null from a base driver. */
  envelope: Envelope | null;
  header: Uint8Array;
  body: Uint8Array;
}

/** Messages that may wait here unread; the transport's window bounds what lies before them. */
const MESSAGES_AHEAD_MAX = 2;

/** The batches of one DoGet, pulled one at a time: what is not pulled holds the driver back through HTTP/2. */
export class ReadStream {
  readonly #call: ClientReadableStream<Buffer>;
  readonly #table: string;
  readonly #released: () => void;
  #state: 'open' | 'ended' | { failed: unknown } = 'open';
  #wake: () => void = () => {};
  #over = false;

  constructor(call: ClientReadableStream<Buffer>, table: string, released: () => void) {
    this.#call = call;
    this.#table = table;
    this.#released = released;
    // grpc-js reads ahead sixteen messages of any size; the stream's own limit is the only handle on that.
    (call as unknown as { _readableState: { highWaterMark: number } })._readableState.highWaterMark =
      MESSAGES_AHEAD_MAX;
    call.on('readable', () => this.#wake());
    call.on('end', () => this.#becomes('ended'));
    // The stream may fail while nobody pulls; whoever pulls next is told.
    call.on('error', (failed) => this.#becomes({ failed }));
  }

  /** The schema, which the first message must carry. */
  async schema(): Promise<Schema> {
    const first = await this.#next();
    if (first === null || first.dataHeader.length === 0 || !isSchemaHeader(first.dataHeader)) {
      throw this.#violation('the first message of a stream is not its schema');
    }
    return decodeSchemaHeader(first.dataHeader);
  }

  /** The next batch, or null at the end of the stream. */
  async next(): Promise<ReceivedBatch | null> {
    const data = await this.#next();
    if (data === null) return null;
    const envelope = decodeEnvelope(data.appMetadata);
    if (data.dataHeader.length > 0 && !isRecordBatchHeader(data.dataHeader)) {
      throw this.#violation('the schema changed inside a stream');
    }
    return { envelope, header: data.dataHeader, body: data.dataBody };
  }

  /** Cancels the call; the driver frees what it held for it. Harmless after the end. */
  close(): void {
    if (this.#over) return;
    this.#end();
    this.#call.cancel();
  }

  async #next(): Promise<FlightData | null> {
    for (;;) {
      const message: Buffer | null = this.#call.read();
      if (message !== null) return decodeFlightData(message);
      if (this.#state === 'ended') {
        this.#end();
        return null;
      }
      if (this.#state !== 'open') {
        this.#end();
        throw fromServiceError(this.#state.failed, 'source', `reading ${this.#table}`);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #becomes(state: 'ended' | { failed: unknown }): void {
    if (this.#state === 'open') this.#state = state;
    this.#wake();
  }

  #end(): void {
    if (!this.#over) this.#released();
    this.#over = true;
  }

  #violation(problem: string): UrutauError {
    return new UrutauError('protocol-violation', `${this.#table}: ${problem}`, { table: this.#table });
  }
}

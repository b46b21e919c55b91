import {
  decodeEnvelope,
  decodeFlightDataPieces,
  decodeSchemaHeader,
  type Envelope,
  type FlightDataInPieces,
  isRecordBatchHeader,
  isSchemaHeader,
  UrutauError,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { type Mask, NO_MASK } from '../supervisor/mask.ts';
import type { DataCall } from './data-connection.ts';
import { failureOf } from './service-error.ts';

/** One record batch as it came: its envelope parsed, its header and body untouched. */
export interface ReceivedBatch {
  /** Null from a base driver. */
  envelope: Envelope | null;
  header: Uint8Array;
  /** The Arrow body, in the pieces in which it was received. */
  body: readonly Uint8Array[];
}

/** The batches of one DoGet, pulled one at a time: what is not pulled holds the driver back through HTTP/2. */
export class ReadStream {
  readonly #call: DataCall;
  readonly #table: string;
  readonly #mask: Mask;

  constructor(call: DataCall, table: string, mask: Mask = NO_MASK) {
    this.#call = call;
    this.#table = table;
    this.#mask = mask;
  }

  /** The schema, which the first message must carry. */
  async schema(): Promise<Schema> {
    const first = await this.#next();
    if (first === null || first.dataHeader.length === 0 || !isSchemaHeader(first.dataHeader)) {
      throw this.#violation('the first message of a stream is not its schema (SNAP-1)');
    }
    return decodeSchemaHeader(first.dataHeader);
  }

  /** The next batch, or null at the end of the stream. */
  async next(): Promise<ReceivedBatch | null> {
    const data = await this.#next();
    if (data === null) return null;
    const envelope = decodeEnvelope(data.appMetadata);
    if (data.dataHeader.length > 0 && !isRecordBatchHeader(data.dataHeader)) {
      throw this.#violation('another schema came inside a stream, where only batches may follow (CHG-1)');
    }
    return { envelope, header: data.dataHeader, body: data.body };
  }

  /** Cancels the call; the driver frees what it held for it. Harmless after the end. */
  close(): void {
    this.#call.cancel();
  }

  async #next(): Promise<FlightDataInPieces | null> {
    const message = await this.#call.read();
    if (message !== null) return decodeFlightDataPieces(message);
    const ended = await this.#call.status;
    if (ended instanceof UrutauError) throw this.#violation(ended.message, ended);
    const failure = failureOf(ended, 'source', `reading ${this.#table}`, this.#mask);
    if (failure) throw failure;
    return null;
  }

  #violation(problem: string, cause?: UrutauError): UrutauError {
    return new UrutauError('protocol-violation', `${this.#table}: ${problem}`, {
      table: this.#table,
      ...(cause === undefined ? {} : { remedy: cause.remedy, cause }),
    });
  }
}

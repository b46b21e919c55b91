import type { Capabilities, EnsureAnswer, EnsureRequest, TableShape, UrutauError } from '@urutau/contract';
import type { Batch } from '../batch.ts';

/** A sink as the pipeline uses it. Checkpoints are opaque texts here; tables are the destination's names. */
export interface SinkPort {
  readonly name: string;
  /** Streams that may be open at once (HOST-7); null for a driver that describes itself. */
  readonly streamsMax: number | null;
  /** It understands events such as a truncate (`envelope/1`); a sink of the base would take them for empty batches. */
  readonly takesEvents: boolean;
  readonly capabilities: Capabilities;
  /** Where positions live: with the data (`commit/1`), or in the host's own store. */
  readonly positions: 'sink' | 'store';
  /** Null without `ensure/1`: then targets are the driver's own business. */
  readonly ensure: ((request: EnsureRequest, signal?: AbortSignal) => Promise<EnsureAnswer>) | null;
  /** Per table the stored text, or null where there certainly is none, or why it cannot be told. */
  checkpoints(tables: readonly string[], signal?: AbortSignal): Promise<Map<string, string | null | UrutauError>>;
  open(table: string, stream: number, shape: TableShape): TableSink;
}

/** One write stream of one table. Calls are carried out in the order in which they are made. */
export interface TableSink {
  /** Called once when the stream breaks by itself. */
  onFailure: (error: UrutauError) => void;
  /** Number of the last message of the write stream, as the sink knows it. */
  readonly seq: number;
  /** Resolves when the transport has taken the batch. */
  write(batch: Batch): Promise<void>;
  /**
   * Makes everything written so far durable together with `checkpoint`; `previous` is what must be stored until then.
   * Rows written after this call belong to the next commit.
   */
  commit(checkpoint: string, previous: string | null): Promise<void>;
  close(): void;
}

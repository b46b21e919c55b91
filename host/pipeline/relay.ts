import { asUrutauError, UrutauError } from '@urutau/contract';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import { faultPoint } from '../fault-point.ts';
import { TIMER_MS_MAX } from '../supervisor/clock.ts';
import type { Batch } from './batch.ts';
import type { Position, TableStream } from './checkpointed-stream.ts';
import type { InFlightWindow } from './in-flight.ts';

export interface RowCounts {
  snapshotRows: number;
  inserts: number;
  updates: number;
  deletes: number;
}

/** What a commit made durable. */
export interface Committed extends RowCounts {
  checkpoint: Checkpoint;
  bytes: number;
  /** From the call to the answer. */
  millis: number;
  /** Commit time at the source of the newest change, RFC 3339. */
  commitTs: string | null;
}

export interface RelayOptions {
  table: string;
  stream: TableStream;
  window: InFlightWindow;
  flush: { rows: number; bytes: number; intervalMs: number };
  /** The most that the sink takes without a commit. */
  uncommittedBytesMax: number;
  position: Position;
  nowMs: () => number;
  committed: (done: Committed) => void;
  /** Called once, when the stream or a commit fails outside of a call to `send`. */
  failed: (error: UrutauError) => void;
}

interface Pending extends RowCounts {
  rows: number;
  bytes: number;
  commitTs: string | null;
}

const NOTHING: Pending = { rows: 0, bytes: 0, snapshotRows: 0, inserts: 0, updates: 0, deletes: 0, commitTs: null };

/**
 * Sends one table's batches into its write stream and commits them by rows, bytes or time. One commit is in flight at
 * a time; rows go on flowing behind its cut as far as the window and the sink's own limit reach.
 */
export class Relay {
  readonly #options: RelayOptions;
  #position: Position;
  /** Sent since the last cut. */
  #pending: Pending = NOTHING;
  /** Sent and not answered by a commit. */
  #unansweredBytes = 0;
  #moved = false;
  /** A batch waits for room; its position was formed before. */
  #sending = false;
  #running: Promise<void> | null = null;
  #wanted = false;
  #timer: NodeJS.Timeout | null = null;
  #failure: UrutauError | null = null;
  #closed = false;
  readonly #broken = new AbortController();

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#position = options.position;
    options.stream.onFailure = (error) => this.#fail(error);
  }

  get position(): Position {
    return this.#position;
  }

  get failure(): UrutauError | null {
    return this.#failure;
  }

  /** CMT-12: the commit that raises the stream's number, before its first row. */
  async raise(): Promise<void> {
    await this.#commit();
  }

  /** Sends one batch; `position` is what the rows up to and with this batch amount to. */
  async send(batch: Batch, position: Position): Promise<void> {
    const { bytes, envelope } = batch;
    faultPoint('host.batch.received');
    this.#sending = true;
    await this.#roomFor(bytes).finally(() => {
      this.#sending = false;
    });
    this.#unansweredBytes += bytes;
    this.#position = position;
    this.#pending = added(this.#pending, batch);
    this.#moved = true;
    const written = this.#options.stream.write(batch);
    if (envelope.event !== undefined || this.#full()) this.commitSoon();
    else this.#timer ??= setTimeout(() => this.commitSoon(), Math.min(this.#options.flush.intervalMs, TIMER_MS_MAX));
    await written;
    faultPoint('host.batch.sent');
  }

  /** Moves the position without a row; the next commit stores it. */
  advance(position: Position): void {
    this.#position = position;
    this.#moved = true;
  }

  /** Moves the offset of an idle table on, unless it is another one by now or a batch is about to move it. */
  moveOn(from: string | null, to: string): void {
    if (this.#sending || this.#position.offset !== from) return;
    this.advance({ ...this.#position, offset: to });
  }

  /** Asks for a commit of what has been sent; returns at once. One that is running is followed by another. */
  commitSoon(): void {
    if (!this.#moved || this.#closed) return;
    this.#wanted = true;
    this.#running ??= this.#commitWhileWanted();
  }

  /** Commits everything sent so far and waits until it is durable. */
  async commitNow(): Promise<void> {
    while (this.#moved || this.#running) {
      this.#throwIfFailed();
      this.commitSoon();
      await this.#running;
    }
    this.#throwIfFailed();
  }

  close(): void {
    this.#closed = true;
    this.#broken.abort(new UrutauError('stream-lost', `the write stream of ${this.#options.table} was closed`));
    if (this.#timer) clearTimeout(this.#timer);
    this.#options.stream.close();
    this.#options.window.release(this.#unansweredBytes);
    this.#unansweredBytes = 0;
  }

  /** CMT-16: never more unanswered than the sink takes; a larger batch goes alone. */
  async #roomFor(bytes: number): Promise<void> {
    while (this.#unansweredBytes > 0 && this.#unansweredBytes + bytes > this.#options.uncommittedBytesMax) {
      this.#throwIfFailed();
      this.commitSoon();
      if (this.#running) await this.#running;
      else break;
    }
    await this.#options.window.reserve(bytes, this.#broken.signal);
    if (this.#broken.signal.aborted) {
      this.#options.window.release(bytes);
      throw this.#broken.signal.reason;
    }
  }

  #full(): boolean {
    const { rows, bytes } = this.#pending;
    return rows >= this.#options.flush.rows || bytes >= this.#options.flush.bytes;
  }

  async #commitWhileWanted(): Promise<void> {
    try {
      while (this.#wanted && this.#failure === null && !this.#closed) await this.#commit();
    } catch (error) {
      this.#fail(asUrutauError(error, 'sink-unavailable', { table: this.#options.table }));
    } finally {
      this.#running = null;
    }
  }

  async #commit(): Promise<void> {
    this.#wanted = false;
    this.#moved = false;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const { rows: _rows, ...counts } = this.#pending;
    this.#pending = NOTHING;
    const startedMs = this.#options.nowMs();
    faultPoint('host.commit.asked');
    const checkpoint = await this.#options.stream.commit(this.#position);
    faultPoint('host.commit.answered');
    if (!this.#closed) {
      this.#unansweredBytes -= counts.bytes;
      this.#options.window.release(counts.bytes);
    }
    this.#options.committed({ ...counts, checkpoint, millis: this.#options.nowMs() - startedMs });
  }

  #throwIfFailed(): void {
    if (this.#failure) throw this.#failure;
  }

  #fail(error: UrutauError): void {
    if (this.#failure || this.#closed) return;
    this.#failure = error;
    this.#broken.abort(error);
    this.#options.failed(error);
  }
}

function added(sum: Pending, { envelope, bytes }: Batch): Pending {
  const { c = 0, u = 0, d = 0 } = envelope.ops ?? {};
  const snapshot = envelope.phase === 'snapshot';
  return {
    rows: sum.rows + envelope.rows,
    bytes: sum.bytes + bytes,
    snapshotRows: sum.snapshotRows + (snapshot ? envelope.rows : 0),
    inserts: sum.inserts + (snapshot ? 0 : c),
    updates: sum.updates + u,
    deletes: sum.deletes + d,
    commitTs: envelope.commitTs ?? sum.commitTs,
  };
}

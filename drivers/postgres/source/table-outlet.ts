import { type SourceBatch, UrutauError } from '@urutau/sdk';
import { compareOffsets, decodeOffsetBase64, encodeOffsetBase64, type Offset } from '../offset.ts';
import type { RowShape } from './row-shape.ts';
import type { Entry, TableFeed } from './table-feed.ts';
import { assembleWithLookUps, type LookUp } from './toast.ts';

export interface TableOutletOptions {
  feed: TableFeed;
  /** Milliseconds that only grow. */
  now(): number;
  lookUp: LookUp;
  /** Whether rows that are in no batch yet should wait for more of them. */
  moreIsComing(feed: TableFeed): boolean;
  /** Something has left the queue. */
  onTaken(): void;
}

export interface OpenOptions {
  /** The stream's name, for `progress`. */
  id: string;
  /** Null is where the last one ended. */
  from: Offset | null;
  rowShape: RowShape;
}

type ShapeEntry = Extract<Entry, { kind: 'shape' }>;
type KeptEntry = Extract<Entry, { kind: 'kept' }>;

interface Stream {
  readonly id: string;
  /** Batches sent. */
  seq: number;
}

/**
 * The reading end of one table's feed: at most one stream at a time takes what is queued. A stream that was closed is
 * gone on with by one that begins at exactly the last offset sent, as long as the queue is kept.
 */
export class TableOutlet {
  readonly feed: TableFeed;
  /** Since when no stream is open; null while one is. */
  closedSince: number | null;
  /** Chunks of the table that are being read: meanwhile its stream may rest. */
  chunks = 0;
  readonly #options: TableOutletOptions;
  /** Shape of the stream that is open, or of the last one. */
  #rowShape: RowShape;
  #sent: Offset;
  #stream: Stream | null = null;
  #wake: (() => void) | null = null;
  #over = false;

  constructor(options: TableOutletOptions) {
    this.feed = options.feed;
    this.#rowShape = options.feed.rowShape;
    this.closedSince = options.now();
    this.#options = options;
    this.#sent = options.feed.start;
  }

  /** A stream is open and has nothing to read. */
  get waiting(): boolean {
    return this.#wake !== null;
  }

  /** Something came into the queue. */
  wake(): void {
    this.#wake?.();
  }

  /** Shape of the next row that a stream brings. */
  get rowShape(): RowShape {
    let shape = this.#rowShape;
    for (const entry of this.feed.queue) {
      if (entry.kind !== 'shape') break;
      shape = entry.rowShape;
    }
    return shape;
  }

  /** Throws `reassign-needed` unless a stream can begin at `from` without a gap; null is where the last one ended. */
  expectFrom(from: Offset | null): void {
    const { table, firstQueued, at, queue } = this.feed;
    if (queue[0]?.kind === 'end') throw queue[0].error;
    const begins = from ?? this.#sent;
    // The host may have committed a later position than that of the last batch, from `progress`: no row lies between.
    const gapless =
      compareOffsets(begins, this.#sent) >= 0 &&
      compareOffsets(begins, at) <= 0 &&
      (firstQueued === null || compareOffsets(begins, firstQueued) < 0);
    if (this.#over || !gapless) {
      throw new UrutauError(
        'reassign-needed',
        `changes of ${table}: the log reader has passed the offset that was asked for`,
        { table },
      );
    }
  }

  /** Whether the table's changes go on without a new assignment: a stream is open, or can be at `from`. */
  goesOn(from: Offset | null): boolean {
    if (this.#stream !== null) return true;
    try {
      this.expectFrom(from);
      return true;
    } catch {
      return false;
    }
  }

  /** Takes over from a stream that is still open. `rowShape` is what the stream was promised to have. */
  async *open({ id, from, rowShape }: OpenOptions, signal: AbortSignal): AsyncGenerator<SourceBatch, void> {
    this.expectFrom(from);
    while (this.feed.queue[0]?.kind === 'shape' && this.#rowShape !== rowShape)
      this.#reshape(this.feed.take() as ShapeEntry);
    const stream: Stream = { id, seq: 0 };
    const over = (): boolean => signal.aborted || this.#stream !== stream;
    this.#stream = stream;
    this.closedSince = null;
    this.#wake?.();
    const wake = (): void => this.#wake?.();
    signal.addEventListener('abort', wake);
    try {
      for (;;) {
        await this.#ready(over);
        if (over()) return;
        yield* this.#give(this.feed.queue[0]!, stream);
      }
    } finally {
      signal.removeEventListener('abort', wake);
      if (this.#stream === stream) {
        this.#stream = null;
        this.closedSince = this.#options.now();
      }
    }
  }

  /** Null without an open stream. Batches that are still queued are counted: each becomes one of the stream. */
  progress(): { stream: string; decoded: string; seq: number } | null {
    if (this.#stream === null) return null;
    let { seq } = this.#stream;
    let decoded = this.#sent;
    for (const entry of this.feed.queue) {
      // How many batches look-ups make is not known yet, and what is behind a new shape is another stream's.
      if (entry.kind !== 'batch') return { stream: this.#stream.id, decoded: encodeOffsetBase64(decoded), seq };
      seq++;
      decoded = decodeOffsetBase64(entry.batch.envelope.offset!);
    }
    if (this.feed.pendingRows === 0 && !this.feed.ended) decoded = this.feed.at;
    return { stream: this.#stream.id, decoded: encodeOffsetBase64(decoded), seq };
  }

  /** Resolves when there is something to take, or when it is over. */
  async #ready(over: () => boolean): Promise<void> {
    const { feed } = this;
    while (feed.queue.length === 0 && !over()) {
      if (feed.pendingRows > 0 && !this.#options.moreIsComing(feed)) {
        feed.close();
        continue;
      }
      await new Promise<void>((resolve) => {
        // Cleared here and not after the wait: by then another stream may wait.
        this.#wake = () => {
          this.#wake = null;
          resolve();
        };
      });
    }
  }

  /** Gives the head of the queue. An entry leaves the queue in the moment in which its batch counts as sent. */
  async *#give(entry: Entry, stream: Stream): AsyncGenerator<SourceBatch, void> {
    const { table } = this.feed;
    switch (entry.kind) {
      case 'batch':
        this.#take();
        stream.seq++;
        this.#sent = decodeOffsetBase64(entry.batch.envelope.offset!);
        yield entry.batch;
        return;
      case 'kept':
        yield* this.#giveKept(entry, stream);
        return;
      case 'shape':
        this.#take();
        this.#reshape(entry);
        throw new UrutauError('schema-changed', `changes of ${table}: its columns or its key changed`, {
          table,
          offset: encodeOffsetBase64(entry.at),
        });
      case 'end':
        this.#take();
        this.#over = true;
        throw entry.error;
    }
  }

  #take(): void {
    this.feed.take();
    this.#options.onTaken();
  }

  #reshape({ rowShape, at }: ShapeEntry): void {
    this.#rowShape = rowShape;
    this.#sent = at;
  }

  async *#giveKept(entry: KeptEntry, stream: Stream): AsyncGenerator<SourceBatch, void> {
    const { changes, rowShape, envelope } = entry;
    let head = entry;
    let given = 0;
    for await (const { batch, count } of assembleWithLookUps(changes, rowShape, this.#options.lookUp)) {
      // Meanwhile the queue was dropped, or another stream has taken over and looks the values up itself.
      if (this.#stream !== stream || this.feed.queue[0] !== head) return;
      const last = changes[count - 1]!;
      const offset = count === changes.length ? envelope.offset! : Buffer.from(last.offset).toString('base64');
      if (count === changes.length) this.#take();
      else head = this.feed.shortenHead(head, count - given);
      given = count;
      stream.seq++;
      this.#sent = decodeOffsetBase64(offset);
      yield { batch, envelope: { ...envelope, offset, decoded: offset } };
    }
  }
}

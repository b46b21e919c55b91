import { type Envelope, faultPoint, type SourceBatch, type UrutauError } from '@urutau/sdk';
import type { Lsn } from '../lsn.ts';
import { compareOffsets, decodeOffset, encodeOffsetBase64, type Offset, OffsetWriter } from '../offset.ts';
import { Assembler, keyText, missingColumns } from './assemble.ts';
import type { DeleteMessage, InsertMessage, UpdateMessage } from './pgoutput.ts';
import { CHANGE_BYTES_MAX, largeChange, withPlace } from './refused-value.ts';
import type { RowShape } from './row-shape.ts';
import type { KeptChange } from './toast.ts';

/** Where the log reader stands. */
export interface LogPosition {
  /** Counts transactions, so that a table sees that another one has begun. */
  transaction: number;
  inTransaction: boolean;
  /** Of the current transaction. */
  commitLsn: Lsn;
  commitMicros: number;
  /** All transactions that committed before it have been decoded whole. */
  decoded: Lsn;
}

/** What waits between the log reader and the stream of one table, in log order. */
export type Entry =
  | { kind: 'batch'; batch: SourceBatch; first: Offset; bytes: number }
  | {
      kind: 'kept';
      changes: KeptChange[];
      rowShape: RowShape;
      envelope: SourceBatch['envelope'];
      first: Offset;
      bytes: number;
    }
  | { kind: 'shape'; rowShape: RowShape; at: Offset; bytes: 0 }
  | { kind: 'end'; error: UrutauError; bytes: 0 };

type KeptEntry = Extract<Entry, { kind: 'kept' }>;

export interface TableFeedOptions {
  table: string;
  oid: number;
  /** What the destination has already. */
  start: Offset;
  rowShape: RowShape;
  position: LogPosition;
  /** Bytes of all tables together. */
  budget: { bytes: number };
  /** A batch or another entry has come into the queue. */
  onEntry(): void;
}

/**
 * One table's part of the log: skips what the destination has, collects changes into batches, and queues them with what
 * ends a stream (a new shape, an error) in log order. A batch closes by size or when someone waits, never at a commit.
 */
export class TableFeed {
  readonly table: string;
  readonly oid: number;
  readonly start: Offset;
  readonly queue: Entry[] = [];
  /** Shape of the next row that the log brings. */
  rowShape: RowShape;
  /** Bytes in the queue and in the batch that is being built. */
  bytes = 0;
  /** When the oldest row that is in no batch yet came; null when there is none. */
  pendingSince: number | null = null;
  readonly #position: LogPosition;
  readonly #budget: { bytes: number };
  readonly #onEntry: () => void;
  readonly #offsets = new OffsetWriter();
  #assembler: Assembler | null = null;
  #kept: KeptChange[] = [];
  #pendingRows = 0;
  #pendingBytes = 0;
  #pendingFirst: Offset | null = null;
  #lastMicros = 0;
  /** The transaction of the last change, and how many of its changes are this table's. */
  #transaction = -1;
  #index = 0;
  /** The last change that was collected. */
  #collectedTransaction = -1;
  #collectedIndex = 0;
  /** So many changes of the current transaction are skipped: the destination has them. */
  #skip = 0;
  #ended = false;

  constructor({ table, oid, start, rowShape, position, budget, onEntry }: TableFeedOptions) {
    this.table = table;
    this.oid = oid;
    this.start = start;
    this.rowShape = rowShape;
    this.#position = position;
    this.#budget = budget;
    this.#onEntry = onEntry;
  }

  /** Rows that are in no batch yet. */
  get pendingRows(): number {
    return this.#pendingRows;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Everything of this table up to here is in the queue or before it, except rows in no batch yet. */
  get at(): Offset {
    const { inTransaction, transaction, commitLsn, decoded } = this.#position;
    const inside = inTransaction && this.#collectedTransaction === transaction;
    const at: Offset = inside ? { lsn: commitLsn, index: BigInt(this.#collectedIndex) } : { lsn: decoded, index: 0n };
    return compareOffsets(at, this.start) < 0 ? this.start : at;
  }

  /** `frame` is the message's bytes, from `start` to `end` in `buffer`; the tuples of `message` lie in `buffer`. */
  change(
    message: InsertMessage | UpdateMessage | DeleteMessage,
    buffer: Uint8Array,
    start: number,
    end: number,
    now: number,
  ): void {
    if (this.#ended || this.#skipped()) return;
    const bytes = end - start;
    try {
      if (bytes > CHANGE_BYTES_MAX) throw largeChange(bytes);
      if (this.#pendingRows > 0 && this.#pendingBytes + bytes > BATCH_BYTES_MAX) this.close();
      this.#append(message, buffer, start, end);
    } catch (error) {
      this.#fail(error, keyText(this.rowShape, buffer, message.kind === 'delete' ? message.before : message.after));
      return;
    }
    if (this.#pendingRows === 0) {
      this.pendingSince = now;
      this.#pendingFirst = { lsn: this.#position.commitLsn, index: BigInt(this.#index) };
    }
    this.#pendingRows++;
    this.#pendingBytes += bytes;
    this.#count(bytes);
    this.#collected();
    if (this.#pendingBytes >= BATCH_BYTES || this.#pendingRows >= BATCH_ROWS_MAX) this.close();
  }

  truncate(): void {
    if (this.#ended || this.#skipped()) return;
    this.close();
    const first = { lsn: this.#position.commitLsn, index: BigInt(this.#index) };
    this.#collected();
    const envelope = { ...this.#envelope(), event: { kind: 'truncate' } as const };
    this.#push({ kind: 'batch', batch: { batch: null, envelope }, first, bytes: 0 });
  }

  /** The log goes on with another shape; what came before has its own batch. */
  reshape(rowShape: RowShape): void {
    if (this.#ended) return;
    this.close();
    this.#assembler = null;
    this.rowShape = rowShape;
    this.#push({ kind: 'shape', rowShape, at: this.at, bytes: 0 });
  }

  /** Ends the table's stream behind what is queued; later changes are dropped. */
  end(error: UrutauError): void {
    if (this.#ended) return;
    this.close();
    this.#ended = true;
    this.#push({ kind: 'end', error, bytes: 0 });
  }

  /** Ends it at once: nothing of the queue will be read. */
  drop(error: UrutauError): void {
    this.queue.length = 0;
    this.#forgetPending();
    this.#count(-this.bytes);
    this.#ended = true;
    this.#push({ kind: 'end', error, bytes: 0 });
  }

  /** Puts the collected rows into the queue as a batch. */
  close(): void {
    if (this.#pendingRows === 0) return;
    const first = this.#pendingFirst!;
    const envelope = this.#envelope();
    const rows = this.#pendingRows;
    const bytes = this.#pendingBytes;
    const changes = this.#kept;
    this.#forgetPending();
    if (changes.length > 0) {
      this.#push({ kind: 'kept', changes, rowShape: this.rowShape, envelope, first, bytes });
      return;
    }
    const batch = this.#assembler!.finish();
    faultPoint('source.batch.closed');
    // A table that is idle again gives its columns' memory back; there may be a thousand of them.
    if (rows < BATCH_ROWS_MAX && bytes < BATCH_BYTES) this.#assembler = null;
    this.#push({ kind: 'batch', batch: { batch, envelope }, first, bytes: batch.bodyLength });
  }

  /** The head of the queue, which leaves it. */
  take(): Entry | undefined {
    const entry = this.queue.shift();
    if (entry) this.#count(-entry.bytes);
    return entry;
  }

  /** The first `count` changes of `head` have left the queue, whose head it is. Answers what stands there now. */
  shortenHead(head: KeptEntry, count: number): KeptEntry {
    const changes = head.changes.slice(count);
    const rest = { ...head, changes, first: decodeOffset(changes[0]!.offset) };
    this.queue[0] = rest;
    return rest;
  }

  /** Offset of the first row that has not left the queue; null when there is none. */
  get firstQueued(): Offset | null {
    for (const entry of this.queue) if (entry.kind === 'batch' || entry.kind === 'kept') return entry.first;
    return this.#pendingFirst;
  }

  /** Counts the change and says whether the destination has it. */
  #skipped(): boolean {
    const { transaction, commitLsn } = this.#position;
    if (this.#transaction !== transaction) {
      this.#transaction = transaction;
      this.#index = 0;
      this.#skip =
        commitLsn < this.start.lsn
          ? Number.POSITIVE_INFINITY
          : commitLsn > this.start.lsn
            ? 0
            : Number(this.start.index);
      this.#offsets.moveTo({ lsn: commitLsn, index: 0n });
    }
    this.#index++;
    this.#offsets.next();
    return this.#index <= this.#skip;
  }

  #append(
    message: InsertMessage | UpdateMessage | DeleteMessage,
    buffer: Uint8Array,
    start: number,
    end: number,
  ): void {
    const offset = this.#offsets.bytes;
    const micros = this.#position.commitMicros;
    const mustKeep = message.kind === 'update' && missingColumns(message).length > 0;
    if (mustKeep && this.#kept.length === 0) this.close();
    if (mustKeep || this.#kept.length > 0) {
      this.#kept.push({ frame: Buffer.from(buffer.subarray(start, end)), offset: Uint8Array.from(offset), micros });
      return;
    }
    this.#assembler ??= new Assembler(this.rowShape);
    switch (message.kind) {
      case 'insert':
        this.#assembler.insert(buffer, message.after, offset, micros);
        return;
      case 'update':
        this.#assembler.update(buffer, message, null, offset, micros);
        return;
      case 'delete':
        this.#assembler.delete(buffer, message, offset, micros);
        return;
    }
  }

  /** Columns of a refused row are half filled, so the rows collected with it are dropped: they are read again. */
  #fail(error: unknown, key: string): void {
    this.#forgetPending();
    this.#assembler = null;
    this.#ended = true;
    this.#push({ kind: 'end', error: withPlace(error, this.table, key), bytes: 0 });
  }

  #forgetPending(): void {
    this.#count(-this.#pendingBytes);
    this.#kept = [];
    this.#pendingRows = 0;
    this.#pendingBytes = 0;
    this.#pendingFirst = null;
    this.pendingSince = null;
  }

  #envelope(): Omit<Envelope, 'seq' | 'rows' | 'ops'> {
    const offset = encodeOffsetBase64(this.at);
    return { offset, decoded: offset, commitTs: rfc3339(this.#lastMicros), phase: 'stream' };
  }

  #collected(): void {
    this.#collectedTransaction = this.#transaction;
    this.#collectedIndex = this.#index;
    this.#lastMicros = this.#position.commitMicros;
  }

  #push(entry: Entry): void {
    this.#count(entry.bytes);
    this.queue.push(entry);
    this.#onEntry();
  }

  #count(bytes: number): void {
    this.bytes += bytes;
    this.#budget.bytes += bytes;
  }
}

const BATCH_BYTES = 1 << 20;
const BATCH_BYTES_MAX = 2 * BATCH_BYTES;
const BATCH_ROWS_MAX = 65_536;

/** Microseconds stay: a Date has only milliseconds. */
function rfc3339(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = String(micros - seconds * 1_000_000).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

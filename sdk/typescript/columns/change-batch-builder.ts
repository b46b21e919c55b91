import type { Envelope, TableShape } from '@urutau/contract';
import { encodeBatchHeader } from '@urutau/contract';
import { BytesBuilder, builderFor, type ColumnBuffers, type ColumnBuilder, Int64Builder } from './builders.ts';
import { zeros } from './zeros.ts';

export type Op = 'c' | 'u' | 'd';

/** A finished record batch: its IPC header and its body in pieces, each padded to eight bytes. */
export interface EncodedBatch {
  header: Uint8Array;
  body: Uint8Array[];
  bodyLength: number;
  rows: number;
  ops: NonNullable<Envelope['ops']>;
}

const OP_BYTES: Record<Op, Uint8Array> = {
  c: Uint8Array.of(0x63),
  u: Uint8Array.of(0x75),
  d: Uint8Array.of(0x64),
};

/**
 * Collects change records (CHG-2) of one table. For each record: append the values to `after`, and after a call of
 * `openBefore` to `before` where there is an image, then `close`. A column that got no value becomes NULL by itself.
 */
export class ChangeBatchBuilder {
  readonly after: readonly ColumnBuilder[];
  /** Empty when the table's changes carry no before-image. */
  readonly before: readonly ColumnBuilder[];
  readonly #hasBefore: boolean;
  #op = new BytesBuilder();
  #offset = new BytesBuilder();
  #tsSource = new Int64Builder();
  #afterPresence = new Presence();
  #beforePresence = new Presence();
  #ops = { c: 0, u: 0, d: 0 };

  constructor(shape: TableShape) {
    this.after = shape.fields.map(builderFor);
    this.#hasBefore = shape.before !== 'none';
    this.before = this.#hasBefore ? shape.fields.map(builderFor) : [];
  }

  get rows(): number {
    return this.#op.length;
  }

  /** Bytes of the body so far. */
  get byteLength(): number {
    let bytes = this.#offset.byteLength + 16 * this.rows;
    for (const column of this.after) bytes += column.byteLength;
    for (const column of this.before) bytes += column.byteLength;
    return bytes;
  }

  /** Before-images are rare, so their columns catch up with the rows only when one comes. */
  openBefore(): readonly ColumnBuilder[] {
    for (const column of this.before) column.padTo(this.rows);
    return this.before;
  }

  /** Ends the record. `tsSourceMicros` is microseconds since 1970 (a safe integer), or null. */
  close(op: Op, offset: Uint8Array, tsSourceMicros: number | null): void {
    this.#op.append(OP_BYTES[op], 0, 1);
    this.#offset.append(offset, 0, offset.length);
    if (tsSourceMicros === null) this.#tsSource.appendNull();
    else this.#appendNanos(tsSourceMicros);
    const rows = this.#op.length;
    const hasAfter = this.#close(this.after, rows);
    this.#afterPresence.append(hasAfter);
    if (this.#hasBefore) this.#beforePresence.append(this.#closeBefore(rows));
    this.#ops[op]++;
  }

  finish(): EncodedBatch {
    const rows = this.rows;
    const columns = [
      this.#op.finish(),
      ...(this.#hasBefore ? [this.#finishStruct(this.before, this.#beforePresence, rows)] : []),
      this.#finishStruct(this.after, this.#afterPresence, rows),
      this.#offset.finish(),
      this.#tsSource.finish(),
    ];
    const ops = this.#ops;
    this.#ops = { c: 0, u: 0, d: 0 };
    return { ...encodeColumns(columns, rows), ops };
  }

  /** Nanoseconds = micros × 1000 passes 2^53, so the product is made from two halves. */
  #appendNanos(micros: number): void {
    const high = Math.floor(micros / 4294967296);
    const low = micros - high * 4294967296;
    const lowNanos = low * 1000;
    const carry = Math.floor(lowNanos / 4294967296);
    this.#tsSource.appendHalves(lowNanos - carry * 4294967296, high * 1000 + carry);
  }

  #close(columns: readonly ColumnBuilder[], rows: number): boolean {
    let any = false;
    for (const column of columns) {
      if (column.length === rows) any = true;
      else column.padTo(rows);
    }
    return any;
  }

  #closeBefore(rows: number): boolean {
    for (const column of this.before) if (column.length === rows) return true;
    return false;
  }

  #finishStruct(columns: readonly ColumnBuilder[], presence: Presence, rows: number): ColumnBuffers {
    for (const column of columns) column.padTo(rows);
    const { validity, nullCount } = presence.finish(rows);
    const children = columns.map((column) => column.finish());
    return {
      nodes: [{ length: rows, nullCount }, ...children.flatMap(({ nodes }) => nodes)],
      buffers: [validity, ...children.flatMap(({ buffers }) => buffers)],
    };
  }
}

/** Joins finished columns into one record batch of `rows` rows. */
export function encodeColumns(columns: readonly ColumnBuffers[], rows: number): Omit<EncodedBatch, 'ops'> {
  const nodes = columns.flatMap((column) => column.nodes);
  const body: Uint8Array[] = [];
  const buffers: { offset: number; length: number }[] = [];
  let at = 0;
  for (const column of columns) {
    for (const buffer of column.buffers) {
      buffers.push({ offset: at, length: buffer.length });
      if (buffer.length === 0) continue;
      body.push(buffer);
      const padding = -buffer.length & 7;
      if (padding > 0) body.push(zeros(padding));
      at += buffer.length + padding;
    }
  }
  return { header: encodeBatchHeader({ length: rows, nodes, buffers, bodyLength: at }), body, bodyLength: at, rows };
}

/** Which rows have the struct at all; a bitmap only when some have and some have not. */
class Presence {
  #first = true;
  #differing: number[] = [];
  #count = 0;
  #rows = 0;

  append(present: boolean): void {
    if (present) this.#count++;
    // Only the rarer answer is kept: rows that differ from the first one.
    if (this.#rows === 0) this.#first = present;
    else if (present !== this.#first) this.#differing.push(this.#rows);
    this.#rows++;
  }

  finish(rows: number): { validity: Uint8Array; nullCount: number } {
    const nullCount = rows - this.#count;
    const validity = nullCount === 0 ? zeros(0) : this.#count === 0 ? zeros((rows + 7) >> 3) : this.#bitmap(rows);
    this.#differing = [];
    this.#count = 0;
    this.#rows = 0;
    return { validity, nullCount };
  }

  #bitmap(rows: number): Uint8Array {
    const bitmap = new Uint8Array((rows + 7) >> 3).fill(this.#first ? 0xff : 0);
    for (const row of this.#differing) bitmap[row >> 3]! ^= 1 << (row & 7);
    if (rows & 7) bitmap[bitmap.length - 1]! &= (1 << (rows & 7)) - 1;
    return bitmap;
  }
}

import { bytesAt, type ChangeBatch, type Column, isNull, UrutauError } from '@urutau/sdk';
import type { Selection } from './field-encoder.ts';

/** Which rows of a batch become which tuples of one message. */
export interface TupleRows {
  readonly count: number;
  /** The batch's row of each tuple. */
  readonly rows: Int32Array;
  /** 1 where the tuple is a delete. */
  readonly deletes: Uint8Array;
  /** Tuples that are written from the image after the change. */
  readonly after: Selection;
  /** Tuples that are written from the image before it. */
  readonly before: Selection;
}

/**
 * Rows `from`–`to` of a batch as the changes of an upsert table: an upsert each, a delete by key for `d`, and for a
 * changed key a delete of the old one followed by the upsert. `key` holds the positions of the key's columns.
 */
export function upsertRows(batch: ChangeBatch, key: readonly number[], from: number, to: number): TupleRows {
  const tuples = new TupleRowsBuilder(2 * (to - from));
  for (let row = from; row < to; row++) {
    if (takeOp(batch, row) === 'd') {
      tuples.before(row);
    } else {
      if (batch.op(row) === 'u' && batch.hasBefore(row) && isKeyChanged(batch, key, row)) tuples.before(row);
      tuples.after(row);
    }
  }
  return tuples.finish();
}

/** Rows `from`–`to` as rows of an append table: one each, or none for a delete where deletes are skipped. */
export function appendRows(batch: ChangeBatch, onDelete: 'record' | 'skip', from: number, to: number): TupleRows {
  const tuples = new TupleRowsBuilder(to - from);
  for (let row = from; row < to; row++) {
    if (takeOp(batch, row) !== 'd') tuples.after(row);
    else if (onDelete === 'record') tuples.before(row);
  }
  return tuples.finish();
}

/** The op, after a check that the image is there that it needs. */
function takeOp(batch: ChangeBatch, row: number): 'c' | 'u' | 'd' {
  const op = batch.op(row);
  if (op === 'd' ? !batch.hasBefore(row) : !batch.hasAfter(row)) {
    throw new UrutauError(
      'protocol-violation',
      `a change with op ${op} came without its image ${op === 'd' ? 'before' : 'after'}`,
      { row },
    );
  }
  return op;
}

function isKeyChanged({ before, after }: ChangeBatch, key: readonly number[], row: number): boolean {
  for (const position of key) if (!isSameCell(before![position]!, after[position]!, row)) return true;
  return false;
}

/** Compares one row of two columns of the same type. */
function isSameCell(a: Column, b: Column, row: number): boolean {
  if (isNull(a, row) || isNull(b, row)) return isNull(a, row) && isNull(b, row);
  switch (a.kind) {
    case 'bool':
      return ((a.bits[row >> 3]! ^ (b as typeof a).bits[row >> 3]!) & (1 << (row & 7))) === 0;
    case 'string':
    case 'json':
    case 'binary':
      return Buffer.compare(bytesAt(a, row), bytesAt(b as typeof a, row)) === 0;
    case 'fixed':
    case 'uuid':
      return isSameSlot(a.bytes, (b as typeof a).bytes, row, a.width);
    case 'decimal':
      return isSameSlot(a.bytes, (b as typeof a).bytes, row, a.bytesPerValue);
    case 'struct':
      return a.children.every((child, index) => isSameCell(child, (b as typeof a).children[index]!, row));
    default:
      return a.values[row] === (b as typeof a).values[row];
  }
}

function isSameSlot(a: Uint8Array, b: Uint8Array, row: number, width: number): boolean {
  for (let at = row * width; at < (row + 1) * width; at++) if (a[at] !== b[at]) return false;
  return true;
}

class TupleRowsBuilder {
  readonly #rows: Int32Array;
  readonly #deletes: Uint8Array;
  readonly #after: Growing;
  readonly #before: Growing;
  #count = 0;

  constructor(tuplesMax: number) {
    this.#rows = new Int32Array(tuplesMax);
    this.#deletes = new Uint8Array(tuplesMax);
    this.#after = new Growing(tuplesMax);
    this.#before = new Growing(tuplesMax);
  }

  after(row: number): void {
    this.#after.push(row, this.#count);
    this.#rows[this.#count++] = row;
  }

  before(row: number): void {
    this.#before.push(row, this.#count);
    this.#deletes[this.#count] = 1;
    this.#rows[this.#count++] = row;
  }

  finish(): TupleRows {
    return { count: this.#count, rows: this.#rows, deletes: this.#deletes, after: this.#after, before: this.#before };
  }
}

class Growing implements Selection {
  readonly rows: Int32Array;
  readonly tuples: Int32Array;
  length = 0;

  constructor(max: number) {
    this.rows = new Int32Array(max);
    this.tuples = new Int32Array(max);
  }

  push(row: number, tuple: number): void {
    this.rows[this.length] = row;
    this.tuples[this.length++] = tuple;
  }
}

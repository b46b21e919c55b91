import { encodeBatchHeader } from '@urutau/contract';
import { Type } from 'apache-arrow';
import { type BatchColumn, isLarge, isNull, offsetAt, viewOf, widthOf } from './batch-columns.ts';

/** An Arrow batch as it is sent. */
export interface TakenRows {
  header: Uint8Array;
  body: Uint8Array;
}

/** Stands for a row that is NULL as a whole, where the column allows one. */
export const NULL_ROW = -1;

/** A batch of the rows `picks`, in this order; every value bit for bit as it was. */
export function takeRows(columns: readonly BatchColumn[], picks: readonly number[]): TakenRows {
  return takeEach(columns.map((column) => ({ column, picks })));
}

/** The same with rows of its own for each column, all of one number. */
export function takeEach(taken: readonly { column: BatchColumn; picks: readonly number[] }[]): TakenRows {
  const out = new Body();
  for (const { column, picks } of taken) take(column, picks, out);
  const { nodes, buffers, length } = out;
  const rows = taken[0]?.picks.length ?? 0;
  return { header: encodeBatchHeader({ length: rows, nodes, buffers, bodyLength: length }), body: out.joined() };
}

function take(column: BatchColumn, picks: readonly number[], out: Body): void {
  out.node(picks.length, takeValidity(column, picks));
  const { field, children } = column;
  const width = widthOf(field);
  let picked = picks;
  if (width !== null) {
    out.add(takeSlots(column, picks, width));
  } else if (field.type.typeId === Type.Bool) {
    out.add(takeBits(column.buffers[0]!, picks));
  } else if (field.type.typeId === Type.List || field.type.typeId === Type.Map) {
    const lists = takeLists(column, picks);
    out.add(lists.offsets);
    picked = lists.picked;
  } else if (field.type.typeId !== Type.Struct) {
    const { offsets, data } = takeBytes(column, picks);
    out.add(offsets);
    out.add(data);
  }
  for (const child of children) take(child, picked, out);
}

/** Null where no value is NULL. */
function takeValidity(column: BatchColumn, picks: readonly number[]): { bits: Uint8Array; nulls: number } | null {
  const bits = new Uint8Array((picks.length + 7) >> 3);
  let nulls = 0;
  for (const [index, row] of picks.entries()) {
    if (row === NULL_ROW || isNull(column, row)) nulls++;
    else bits[index >> 3]! |= 1 << (index & 7);
  }
  return nulls === 0 ? null : { bits, nulls };
}

function takeSlots({ buffers: [values] }: BatchColumn, picks: readonly number[], width: number): Uint8Array {
  const taken = new Uint8Array(picks.length * width);
  for (const [index, row] of picks.entries()) {
    if (row !== NULL_ROW) taken.set(values!.subarray(row * width, (row + 1) * width), index * width);
  }
  return taken;
}

function takeBits(bits: Uint8Array, picks: readonly number[]): Uint8Array {
  const taken = new Uint8Array((picks.length + 7) >> 3);
  for (const [index, row] of picks.entries()) {
    if (row !== NULL_ROW && ((bits[row >> 3]! >> (row & 7)) & 1) === 1) taken[index >> 3]! |= 1 << (index & 7);
  }
  return taken;
}

function takeBytes(column: BatchColumn, picks: readonly number[]): { offsets: Uint8Array; data: Uint8Array } {
  const lengths = picks.map((row) => (row === NULL_ROW ? 0 : offsetAt(column, row + 1) - offsetAt(column, row)));
  const data = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const [index, row] of picks.entries()) {
    if (row === NULL_ROW) continue;
    const start = offsetAt(column, row);
    data.set(column.buffers[1]!.subarray(start, start + lengths[index]!), at);
    at += lengths[index]!;
  }
  return { offsets: offsetsOf(lengths, isLarge(column.field)), data };
}

function takeLists(column: BatchColumn, picks: readonly number[]): { offsets: Uint8Array; picked: number[] } {
  const picked: number[] = [];
  const lengths = picks.map((row) => {
    if (row === NULL_ROW) return 0;
    const [start, end] = [offsetAt(column, row), offsetAt(column, row + 1)];
    for (let item = start; item < end; item++) picked.push(item);
    return end - start;
  });
  return { offsets: offsetsOf(lengths, false), picked };
}

function offsetsOf(lengths: readonly number[], large: boolean): Uint8Array {
  const bytes = new Uint8Array((large ? 8 : 4) * (lengths.length + 1));
  const view = viewOf(bytes);
  let end = 0;
  for (const [index, length] of lengths.entries()) {
    end += length;
    if (large) view.setBigInt64(8 * (index + 1), BigInt(end), true);
    else view.setInt32(4 * (index + 1), end, true);
  }
  return bytes;
}

class Body {
  readonly nodes: { length: number; nullCount: number }[] = [];
  readonly buffers: { offset: number; length: number }[] = [];
  readonly #pieces: Uint8Array[] = [];
  length = 0;

  node(length: number, validity: { bits: Uint8Array; nulls: number } | null): void {
    this.nodes.push({ length, nullCount: validity?.nulls ?? 0 });
    this.add(validity?.bits ?? new Uint8Array(0));
  }

  add(bytes: Uint8Array): void {
    this.buffers.push({ offset: this.length, length: bytes.length });
    const padding = -bytes.length & 7;
    this.#pieces.push(bytes, new Uint8Array(padding));
    this.length += bytes.length + padding;
  }

  joined(): Uint8Array {
    return Buffer.concat(this.#pieces, this.length);
  }
}

import { UrutauError } from '@urutau/sdk';
import type { Lsn } from './lsn.ts';

/** Bytes of an offset: the commit LSN and the index, both unsigned 64 bits, big endian, so that byte order is log order. */
export const OFFSET_BYTES = 16;

/**
 * A place in one table's changes: all transactions that committed before `lsn`, and of the one that committed at `lsn`
 * the first `index` changes of the table.
 */
export interface Offset {
  lsn: Lsn;
  index: bigint;
}

export function encodeOffset({ lsn, index }: Offset): Uint8Array {
  const bytes = Buffer.alloc(OFFSET_BYTES);
  bytes.writeBigUInt64BE(lsn, 0);
  bytes.writeBigUInt64BE(index, 8);
  return bytes;
}

/** Throws `position-lost` for bytes that this driver did not make. */
export function decodeOffset(bytes: Uint8Array): Offset {
  if (bytes.length !== OFFSET_BYTES) throw foreign(`${bytes.length} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, OFFSET_BYTES);
  return { lsn: view.getBigUint64(0) as Lsn, index: view.getBigUint64(8) };
}

export function encodeOffsetBase64(offset: Offset): string {
  return Buffer.from(encodeOffset(offset)).toString('base64');
}

/** Throws `position-lost` for text that this driver did not make. */
export function decodeOffsetBase64(text: string): Offset {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw foreign('text that is not base64');
  return decodeOffset(bytes);
}

/** The place right after the whole transaction that committed at `lsn`. */
export function afterTransaction(lsn: Lsn): Offset {
  return { lsn: (lsn + 1n) as Lsn, index: 0n };
}

/** -1, 0 or 1, as the places lie in the log. */
export function compareOffsets(a: Offset, b: Offset): -1 | 0 | 1 {
  if (a.lsn !== b.lsn) return a.lsn < b.lsn ? -1 : 1;
  return a.index === b.index ? 0 : a.index < b.index ? -1 : 1;
}

/** Writes the offsets of consecutive changes of one table without an allocation or a bigint for each. */
export class OffsetWriter {
  /** The current offset; overwritten by the next call. */
  readonly bytes: Uint8Array = Buffer.alloc(OFFSET_BYTES);
  readonly #view = new DataView(this.bytes.buffer, this.bytes.byteOffset, OFFSET_BYTES);
  #indexLow = 0;

  /** Goes to `offset`; the first change of a transaction begins at index 0. */
  moveTo({ lsn, index }: Offset): void {
    this.#view.setBigUint64(0, lsn);
    this.#view.setBigUint64(8, index);
    this.#indexLow = Number(index & 0xffff_ffffn);
  }

  /** Counts one change of the transaction and returns `bytes`. */
  next(): Uint8Array {
    this.#indexLow = (this.#indexLow + 1) >>> 0;
    this.#view.setUint32(12, this.#indexLow);
    if (this.#indexLow === 0) this.#view.setUint32(8, this.#view.getUint32(8) + 1);
    return this.bytes;
  }
}

function foreign(came: string): UrutauError {
  return new UrutauError('position-lost', `expected an offset of ${OFFSET_BYTES} bytes of this driver; came ${came}`);
}

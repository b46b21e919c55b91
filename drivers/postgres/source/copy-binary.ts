import { LIMIT, UrutauError } from '@urutau/sdk';
import type { ValueAppender } from './text-values.ts';

/** Where the values of one column go. */
export interface CopyColumn {
  name: string;
  append: ValueAppender;
  appendNull(): void;
}

export interface CopyBinaryOptions {
  columns: readonly CopyColumn[];
  /** Called after each row; true asks to stop before the next one. */
  rowDone(): boolean;
}

/**
 * Decodes COPY (FORMAT binary) from chunks of any size. A row is looked over as a whole before its first value is
 * appended, so that the end of a chunk never leaves half a row. After an error it must not be used again.
 */
export class CopyBinaryDecoder {
  readonly #columns: readonly CopyColumn[];
  readonly #rowDone: () => boolean;
  readonly #starts: Int32Array;
  readonly #lengths: Int32Array;
  readonly #rest = new RestBytes();
  #state: 'header' | 'rows' | 'done' = 'header';
  /** What is being decoded: a chunk of the caller, or the rest of earlier ones with the chunk behind it. */
  #bytes: Uint8Array = NOTHING;
  #at = 0;
  #end = 0;

  constructor({ columns, rowDone }: CopyBinaryOptions) {
    this.#columns = columns;
    this.#rowDone = rowDone;
    this.#starts = new Int32Array(columns.length);
    this.#lengths = new Int32Array(columns.length);
  }

  /**
   * Decodes all whole rows of `bytes` from `start` to `end`; what is left waits for the next chunk. False when `rowDone`
   * asked to stop: then `resume` goes on, and until true comes back `bytes` must stay as they are and no others be
   * pushed.
   */
  push(bytes: Uint8Array, start = 0, end = bytes.length): boolean {
    if (this.#rest.length === 0) {
      this.#bytes = bytes;
      this.#at = start;
      this.#end = end;
    } else {
      this.#bytes = this.#rest.append(bytes, start, end);
      this.#at = 0;
      this.#end = this.#rest.length;
    }
    return this.resume();
  }

  /** Goes on after a stop; answers like `push`. */
  resume(): boolean {
    if (this.#state === 'header' && this.#readHeader()) this.#state = 'rows';
    if (this.#state === 'rows' && !this.#readRows()) return false;
    if (this.#state === 'done' && this.#at < this.#end) {
      throw violation('nothing after the trailer', `${this.#end - this.#at} bytes`);
    }
    if (this.#at < this.#end || this.#rest.length > 0) this.#rest.keep(this.#bytes, this.#at, this.#end);
    this.#bytes = NOTHING;
    this.#at = 0;
    this.#end = 0;
    return true;
  }

  /** Throws `protocol-violation` unless the stream ended with its trailer. */
  end(): void {
    if (this.#state !== 'done') throw violation('the trailer', 'the end of the stream');
  }

  /** Field `index` of the row whose value was refused, for the key of the report; null for NULL, and where it has not come. */
  failedField(index: number): Uint8Array | null {
    const length = this.#lengths[index]!;
    if (length < 0) return null;
    const start = this.#starts[index]!;
    return this.#bytes.subarray(start, start + length);
  }

  #readHeader(): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    if (this.#end - at < HEADER_BYTES) return false;
    if (SIGNATURE.some((byte, i) => bytes[at + i] !== byte)) throw violation('the signature PGCOPY', 'other bytes');
    const flags = int32At(bytes, at + SIGNATURE.length);
    if (flags !== 0) throw violation('no flags in the header', `0x${(flags >>> 0).toString(16)}`);
    const extension = int32At(bytes, at + SIGNATURE.length + 4);
    if (extension !== 0) throw violation('a header without extension', `one of ${extension} bytes`);
    this.#at = at + HEADER_BYTES;
    return true;
  }

  /** False when asked to stop; true at the end of the whole rows or at the trailer. */
  #readRows(): boolean {
    const columns = this.#columns;
    const starts = this.#starts;
    const lengths = this.#lengths;
    const bytes = this.#bytes;
    for (;;) {
      const next = this.#scanRow();
      if (next < 0) return true;
      for (let i = 0; i < columns.length; i++) {
        const length = lengths[i]!;
        if (length < 0) columns[i]!.appendNull();
        else columns[i]!.append(bytes, starts[i]!, length);
      }
      this.#at = next;
      if (this.#rowDone()) return false;
    }
  }

  /** Finds the fields of the row at hand. The place after it, or -1 when there is no whole row. */
  #scanRow(): number {
    const bytes = this.#bytes;
    const end = this.#end;
    const count = this.#columns.length;
    let at = this.#at;
    if (end - at < 2) return -1;
    const fields = (bytes[at]! << 8) | bytes[at + 1]!;
    at += 2;
    if (fields !== count) return this.#readTrailer(fields);
    const starts = this.#starts;
    const lengths = this.#lengths;
    for (let i = 0; i < count; i++) {
      if (end - at < 4) return -1;
      const length = int32At(bytes, at);
      at += 4;
      if (length < -1) throw violation(`the length of column ${this.#columns[i]!.name}`, String(length));
      starts[i] = at;
      lengths[i] = length;
      if (length > 0) at += length;
      // Before the bytes have come: a value over the limit is never collected.
      if (at - this.#at > ROW_BYTES_MAX) throw this.#tooLarge(i, at - this.#at);
    }
    return at <= end ? at : -1;
  }

  #readTrailer(fields: number): -1 {
    if (fields !== TRAILER) throw violation(`a row of ${this.#columns.length} fields`, `one of ${fields}`);
    this.#at += 2;
    this.#state = 'done';
    return -1;
  }

  #tooLarge(index: number, bytes: number): UrutauError {
    const { name } = this.#columns[index]!;
    // What stands there for this field and those after it is of the row before.
    const length = this.#lengths[index];
    this.#lengths.fill(-1, index);
    return new UrutauError(
      'row-too-large',
      `column ${name}: expected a row of at most ${ROW_BYTES_MAX} bytes; with this value of ${length} bytes it has ${bytes}`,
      { column: name },
    );
  }
}

const ROW_BYTES_MAX = LIMIT.messageBytesMax;
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
const HEADER_BYTES = SIGNATURE.length + 8;
const TRAILER = 0xffff;
const NOTHING = new Uint8Array(0);

function int32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

function violation(expected: string, came: string): UrutauError {
  return new UrutauError('protocol-violation', `COPY binary: expected ${expected}; came ${came}`, {
    remedy: 'The server speaks COPY binary otherwise than this driver knows; report it with the server version.',
  });
}

/** Bytes of a row that is not whole yet. Grows by doubling, so that a large row is not copied again for each chunk. */
class RestBytes {
  #bytes = Buffer.alloc(0);
  #used = 0;

  get length(): number {
    return this.#used;
  }

  /** All of the rest, with these bytes at its end. */
  append(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const used = this.#used + end - start;
    if (used > this.#bytes.length) {
      const next = Buffer.allocUnsafeSlow(Math.max(used, 2 * this.#bytes.length));
      next.set(this.#bytes.subarray(0, this.#used));
      this.#bytes = next;
    }
    this.#bytes.set(bytes.subarray(start, end), this.#used);
    this.#used = used;
    return this.#bytes;
  }

  /** Keeps the bytes from `start` to `end` alone; `bytes` is what `append` gave, if there was a rest. */
  keep(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    if (this.#used > 0) {
      this.#bytes.copyWithin(0, start, end);
    } else {
      if (length > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(Math.max(length, REST_BYTES));
      this.#bytes.set(bytes.subarray(start, end));
    }
    this.#used = length;
    // One large row must not hold its memory for the rest of the table.
    if (length <= REST_BYTES && this.#bytes.length > REST_BYTES_KEPT) {
      const next = Buffer.allocUnsafeSlow(REST_BYTES);
      next.set(this.#bytes.subarray(0, length));
      this.#bytes = next;
    }
  }
}

const REST_BYTES = 65_536;
const REST_BYTES_KEPT = 1_048_576;

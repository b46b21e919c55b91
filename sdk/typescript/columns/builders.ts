import { UrutauError } from '@urutau/contract';
import type { Field } from 'apache-arrow';
import { type DataType, Type } from 'apache-arrow';
import { zeros } from './zeros.ts';

/** What a finished column contributes to a batch: one node (and those of its children) and its buffers in order. */
export interface ColumnBuffers {
  nodes: { length: number; nullCount: number }[];
  buffers: Uint8Array[];
}

/**
 * Collects one column straight into typed arrays. `finish` hands the arrays over and begins anew, so that a batch may
 * wait in a queue while the next one is built. Rows that were never appended can be filled up with `padTo`.
 */
export abstract class ColumnBuilder {
  /** Rows so far. */
  length = 0;
  protected nullCount = 0;
  #validity: Uint8Array | null = null;

  /** Bytes that the column would add to a batch now. */
  abstract get byteLength(): number;

  appendNull(): void {
    this.#markNull(this.length, 1);
    this.skip(1);
    this.length++;
  }

  /** Appends NULLs until the column has `rows` rows. */
  padTo(rows: number): void {
    const missing = rows - this.length;
    if (missing <= 0) return;
    this.#markNull(this.length, missing);
    this.skip(missing);
    this.length = rows;
  }

  finish(): ColumnBuffers {
    const node = { length: this.length, nullCount: this.nullCount };
    const allNull = this.nullCount === this.length;
    const buffers = [this.#finishValidity(), ...(allNull ? this.emptyValues(this.length) : this.takeValues())];
    this.length = 0;
    this.nullCount = 0;
    this.#validity = null;
    return { nodes: [node], buffers };
  }

  /** Leaves room for `rows` NULLs. */
  protected abstract skip(rows: number): void;
  /** Hands over the value buffers and begins anew. */
  protected abstract takeValues(): Uint8Array[];
  /** The value buffers of a column without a single value; zeros are shared, not allocated. Begins anew. */
  protected abstract emptyValues(rows: number): Uint8Array[];

  /** Must be called before `length` grows, once for each row with a value. */
  protected markValid(): void {
    if (this.#validity === null) return;
    this.#reserveValidity(this.length + 1);
    this.#validity[this.length >> 3]! |= 1 << (this.length & 7);
  }

  /** The bitmap is made at the first NULL: most columns never need one. */
  #markNull(from: number, count: number): void {
    this.nullCount += count;
    if (this.#validity === null && from > 0) {
      // Rows of a column that has only NULLs so far need no bits either.
      if (this.nullCount === from + count) return;
      this.#validity = new Uint8Array(Math.max(64, (from + count + 7) >> 3));
      setBits(this.#validity, from);
      return;
    }
    if (this.#validity !== null) this.#reserveValidity(from + count);
  }

  #reserveValidity(rows: number): void {
    const bytes = (rows + 7) >> 3;
    if (this.#validity!.length < bytes) this.#validity = grown(this.#validity!, bytes);
  }

  /** A value comes after NULLs only: from here on bits are needed, and all before are zero. */
  protected startValidityAfterNulls(): void {
    if (this.#validity === null && this.nullCount > 0) {
      this.#validity = new Uint8Array(Math.max(64, (this.length + 8) >> 3));
    }
  }

  #finishValidity(): Uint8Array {
    if (this.nullCount === 0) return zeros(0);
    const bytes = (this.length + 7) >> 3;
    if (this.#validity === null) return zeros(bytes);
    this.#reserveValidity(this.length);
    return this.#validity.subarray(0, bytes);
  }
}

/** Values of a fixed width in bytes, written through `at(width)`. */
abstract class FixedWidthBuilder extends ColumnBuilder {
  readonly #width: number;
  protected bytes: Uint8Array;

  constructor(width: number) {
    super();
    this.#width = width;
    this.bytes = new Uint8Array(0);
  }

  get byteLength(): number {
    return this.length * this.#width + (this.nullCount > 0 ? (this.length + 7) >> 3 : 0);
  }

  /** Makes room for one more value and marks it valid. */
  protected reserve(): void {
    const needed = (this.length + 1) * this.#width;
    if (this.bytes.length < needed) this.#grow(needed);
    if (this.nullCount > 0) {
      this.startValidityAfterNulls();
      this.markValid();
    }
  }

  protected skip(rows: number): void {
    const needed = (this.length + rows) * this.#width;
    if (this.bytes.length > 0 && this.bytes.length < needed) this.#grow(needed);
  }

  protected takeValues(): Uint8Array[] {
    const used = this.length * this.#width;
    if (this.bytes.length < used) this.#grow(used);
    const values = this.bytes.subarray(0, used);
    this.bytes = new Uint8Array(roundUp(used + (used >> 3)));
    this.attach();
    return [values];
  }

  protected emptyValues(rows: number): Uint8Array[] {
    return [zeros(rows * this.#width)];
  }

  /** Lays the typed arrays over `bytes` again. */
  protected abstract attach(): void;

  #grow(needed: number): void {
    this.bytes = grown(this.bytes, needed);
    this.attach();
  }
}

export class BoolBuilder extends ColumnBuilder {
  #bits: Uint8Array = new Uint8Array(0);

  get byteLength(): number {
    return ((this.length + 7) >> 3) * (this.nullCount > 0 ? 2 : 1);
  }

  append(value: boolean): void {
    this.#reserve(this.length + 1);
    if (this.nullCount > 0) {
      this.startValidityAfterNulls();
      this.markValid();
    }
    if (value) this.#bits[this.length >> 3]! |= 1 << (this.length & 7);
    this.length++;
  }

  protected skip(rows: number): void {
    if (this.#bits.length > 0) this.#reserve(this.length + rows);
  }

  protected takeValues(): Uint8Array[] {
    this.#reserve(this.length);
    const values = this.#bits.subarray(0, (this.length + 7) >> 3);
    this.#bits = new Uint8Array(roundUp(values.length));
    return [values];
  }

  protected emptyValues(rows: number): Uint8Array[] {
    return [zeros((rows + 7) >> 3)];
  }

  #reserve(rows: number): void {
    const bytes = (rows + 7) >> 3;
    if (this.#bits.length < bytes) this.#bits = grown(this.#bits, bytes);
  }
}

/** Int8–32 and UInt8–32, Date32: any integer that fits. */
export class Int32Builder extends FixedWidthBuilder {
  #values: Int32Array = new Int32Array(0);

  constructor() {
    super(4);
  }

  append(value: number): void {
    this.reserve();
    this.#values[this.length++] = value;
  }

  protected attach(): void {
    this.#values = new Int32Array(this.bytes.buffer, 0, this.bytes.length >> 2);
  }
}

const TWO_32 = 4294967296;

/** Int64, UInt64, Timestamp, Time64: 64 bits that never pass through a float unless they are known to fit. */
export class Int64Builder extends FixedWidthBuilder {
  #halves: Uint32Array = new Uint32Array(0);
  #values: BigInt64Array = new BigInt64Array(0);

  constructor() {
    super(8);
  }

  /** `value` must be a safe integer; the caller has checked. */
  appendNumber(value: number): void {
    this.reserve();
    const high = Math.floor(value / TWO_32);
    this.#halves[2 * this.length] = value - high * TWO_32;
    this.#halves[2 * this.length + 1] = high;
    this.length++;
  }

  /** The low and the high 32 bits, two's complement. */
  appendHalves(low: number, high: number): void {
    this.reserve();
    this.#halves[2 * this.length] = low;
    this.#halves[2 * this.length + 1] = high;
    this.length++;
  }

  appendBigInt(value: bigint): void {
    this.reserve();
    this.#values[this.length++] = value;
  }

  protected attach(): void {
    this.#halves = new Uint32Array(this.bytes.buffer, 0, this.bytes.length >> 2);
    this.#values = new BigInt64Array(this.bytes.buffer, 0, this.bytes.length >> 3);
  }
}

export class Float32Builder extends FixedWidthBuilder {
  #values: Float32Array = new Float32Array(0);

  constructor() {
    super(4);
  }

  append(value: number): void {
    this.reserve();
    this.#values[this.length++] = value;
  }

  protected attach(): void {
    this.#values = new Float32Array(this.bytes.buffer, 0, this.bytes.length >> 2);
  }
}

export class Float64Builder extends FixedWidthBuilder {
  #values: Float64Array = new Float64Array(0);

  constructor() {
    super(8);
  }

  append(value: number): void {
    this.reserve();
    this.#values[this.length++] = value;
  }

  protected attach(): void {
    this.#values = new Float64Array(this.bytes.buffer, 0, this.bytes.length >> 3);
  }
}

/** Decimal128: the unscaled integer, two's complement, little endian. */
export class DecimalBuilder extends FixedWidthBuilder {
  #words: Uint32Array = new Uint32Array(0);

  constructor() {
    super(16);
  }

  /** `unscaled` must be a safe integer. */
  appendNumber(unscaled: number): void {
    this.reserve();
    const at = 4 * this.length;
    const high = Math.floor(unscaled / TWO_32);
    const sign = unscaled < 0 ? -1 : 0;
    this.#words[at] = unscaled - high * TWO_32;
    this.#words[at + 1] = high;
    this.#words[at + 2] = sign;
    this.#words[at + 3] = sign;
    this.length++;
  }

  appendBigInt(unscaled: bigint): void {
    this.reserve();
    let rest = BigInt.asUintN(128, unscaled);
    for (let word = 0; word < 4; word++) {
      this.#words[4 * this.length + word] = Number(rest & 0xffff_ffffn);
      rest >>= 32n;
    }
    this.length++;
  }

  protected attach(): void {
    this.#words = new Uint32Array(this.bytes.buffer, 0, this.bytes.length >> 2);
  }
}

/** FixedSizeBinary, uuid among them. */
export class FixedBytesBuilder extends FixedWidthBuilder {
  readonly width: number;

  constructor(width: number) {
    super(width);
    this.width = width;
  }

  /** Copies `width` bytes. */
  append(source: Uint8Array, offset: number): void {
    this.reserve();
    this.bytes.set(source.subarray(offset, offset + this.width), this.length * this.width);
    this.length++;
  }

  /** Room for one value, to be written at once: the array and where in it. */
  appendSlot(): { bytes: Uint8Array; at: number } {
    this.reserve();
    return { bytes: this.bytes, at: this.length++ * this.width };
  }

  protected attach(): void {}
}

/** Utf8 and Binary: bytes of any length. Text must be valid UTF-8 already. */
export class BytesBuilder extends ColumnBuilder {
  #offsets = new Int32Array(0);
  #bytes = Buffer.alloc(0);
  #used = 0;

  get byteLength(): number {
    return this.#used + 4 * (this.length + 1) + (this.nullCount > 0 ? (this.length + 7) >> 3 : 0);
  }

  append(source: Uint8Array, offset: number, length: number): void {
    const end = this.#used + length;
    this.#reserve(end);
    if (length < 96) {
      // A loop beats a view and the call of `set` for the short values that most columns hold.
      const bytes = this.#bytes;
      for (let i = 0, to = this.#used; i < length; i++) bytes[to++] = source[offset + i]!;
    } else {
      this.#bytes.set(source.subarray(offset, offset + length), this.#used);
    }
    this.#close(end);
  }

  /** Encodes a string as UTF-8. For values that come rarely. */
  appendString(value: string): void {
    const end = this.#used + Buffer.byteLength(value);
    this.#reserve(end);
    this.#bytes.write(value, this.#used);
    this.#close(end);
  }

  protected skip(rows: number): void {
    if (this.#offsets.length === 0) return;
    this.#reserveOffsets(rows);
    this.#offsets.fill(this.#used, this.length + 1, this.length + rows + 1);
  }

  protected takeValues(): Uint8Array[] {
    this.#reserveOffsets(0);
    const offsets = new Uint8Array(this.#offsets.buffer, 0, 4 * (this.length + 1));
    const bytes = this.#bytes.subarray(0, this.#used);
    this.#offsets = new Int32Array(roundUp(this.length + (this.length >> 3) + 2));
    this.#bytes = Buffer.allocUnsafeSlow(roundUp(this.#used + (this.#used >> 3)));
    this.#used = 0;
    return [offsets, bytes];
  }

  protected emptyValues(rows: number): Uint8Array[] {
    this.#used = 0;
    this.#offsets.fill(0);
    return [zeros(4 * (rows + 1)), zeros(0)];
  }

  #reserve(end: number): void {
    if (this.#bytes.length < end) {
      const next = Buffer.allocUnsafeSlow(roundUp(Math.max(end, 2 * this.#bytes.length, 1024)));
      next.set(this.#bytes.subarray(0, this.#used));
      this.#bytes = next;
    }
    this.#reserveOffsets(1);
    if (this.nullCount > 0) {
      this.startValidityAfterNulls();
      this.markValid();
    }
  }

  #reserveOffsets(rows: number): void {
    const needed = this.length + rows + 1;
    if (this.#offsets.length >= needed) return;
    const next = new Int32Array(roundUp(Math.max(needed, 2 * this.#offsets.length, 64)));
    next.set(this.#offsets);
    this.#offsets = next;
  }

  #close(end: number): void {
    this.#used = end;
    this.#offsets[++this.length] = end;
  }
}

/** The builder for an Arrow type. Throws `type-unsupported` for nested types, which have no builder yet. */
export function builderFor({ name, type }: Field): ColumnBuilder {
  const builder = builderOf(type);
  if (builder === null) {
    throw new UrutauError('type-unsupported', `column ${name}: no builder for ${type}`, { column: name });
  }
  return builder;
}

function builderOf(type: DataType): ColumnBuilder | null {
  switch (type.typeId) {
    case Type.Bool:
      return new BoolBuilder();
    case Type.Int:
      return intBuilder((type as unknown as { bitWidth: number }).bitWidth);
    case Type.Float:
      return (type as unknown as { precision: number }).precision === 1 ? new Float32Builder() : new Float64Builder();
    case Type.Decimal:
      return (type as unknown as { bitWidth: number }).bitWidth === 128 ? new DecimalBuilder() : null;
    case Type.Date:
      return (type as unknown as { unit: number }).unit === 0 ? new Int32Builder() : null;
    case Type.Time:
    case Type.Timestamp:
      return new Int64Builder();
    case Type.Utf8:
    case Type.Binary:
      return new BytesBuilder();
    case Type.FixedSizeBinary:
      return new FixedBytesBuilder((type as unknown as { byteWidth: number }).byteWidth);
    default:
      return null;
  }
}

function intBuilder(bitWidth: number): ColumnBuilder | null {
  if (bitWidth === 64) return new Int64Builder();
  return bitWidth === 32 ? new Int32Builder() : null;
}

function grown(bytes: Uint8Array<ArrayBuffer>, needed: number): Uint8Array<ArrayBuffer>;
function grown(bytes: Uint8Array, needed: number): Uint8Array;
function grown(bytes: Uint8Array, needed: number): Uint8Array {
  const next = new Uint8Array(roundUp(Math.max(needed, 2 * bytes.length, 64)));
  next.set(bytes);
  return next;
}

/** Buffers grow in multiples of eight bytes, so that padding never needs a copy. */
function roundUp(bytes: number): number {
  return (bytes + 7) & ~7;
}

function setBits(bitmap: Uint8Array, count: number): void {
  bitmap.fill(0xff, 0, count >> 3);
  if (count & 7) bitmap[count >> 3] = (1 << (count & 7)) - 1;
}

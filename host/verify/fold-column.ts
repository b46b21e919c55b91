import { type Data, Type } from 'apache-arrow';
import { canonicalText } from './canonical-text.ts';
import type { Form } from './column-pairs.ts';
import { type Lanes, takeFirst, takeSecond } from './lanes.ts';

/** Takes one column of a batch into the lanes of its rows. Equal values of one form give equal lanes, on either side. */
export function foldColumn(data: Data, form: Form, lanes: Lanes): void {
  if (form === 'as-is') folderOf(data)(data, lanes);
  else foldTexts(data, form, lanes);
}

function folderOf({ typeId, type, values }: Data): (data: Data, lanes: Lanes) => void {
  switch (typeId) {
    case Type.Int:
    case Type.Date:
    case Type.Time:
    case Type.Timestamp:
      return (data, lanes) => foldWords(data, lanes, values.BYTES_PER_ELEMENT === 8 ? 2 : 1);
    case Type.Decimal:
      return (data, lanes) => foldWords(data, lanes, (type as unknown as { bitWidth: number }).bitWidth / 32);
    case Type.Float:
      return foldFloats;
    case Type.Bool:
      return foldBits;
    case Type.Utf8:
    case Type.Binary:
    case Type.LargeUtf8:
    case Type.LargeBinary:
      return foldBytes;
    case Type.FixedSizeBinary:
      return foldFixed;
    default:
      return (data, lanes) => foldTexts(data, 'text', lanes);
  }
}

/** A NULL is another word in each lane, which no value is. */
const NULL_FIRST = 0x6e756c6c;
const NULL_SECOND = 0x4c4c554e;

/** Null when every row has a value. */
function validityOf({ nullBitmap, nullCount }: Data): Uint8Array | null {
  return nullCount === 0 || !nullBitmap || nullBitmap.length === 0 ? null : nullBitmap;
}

/** A slice keeps the bits of the whole column. */
function isUnset(bits: Uint8Array, bit: number): boolean {
  return (bits[bit >> 3]! & (1 << (bit & 7))) === 0;
}

// One loop for each layout, written out: a shared loop that calls a function per cell is many times slower.

function foldWords(data: Data, { first, second }: Lanes, words: number): void {
  const validity = validityOf(data);
  const values =
    data.values.BYTES_PER_ELEMENT === 8
      ? new Int32Array(data.values.buffer, data.values.byteOffset, data.values.length * 2)
      : (data.values as Int32Array);
  for (let row = 0; row < data.length; row++) {
    if (validity !== null && isUnset(validity, data.offset + row)) {
      first[row] = takeFirst(first[row]!, NULL_FIRST);
      second[row] = takeSecond(second[row]!, NULL_SECOND);
      continue;
    }
    let one = first[row]!;
    let two = second[row]!;
    for (let at = row * words; at < row * words + words; at++) {
      one = takeFirst(one, values[at]!);
      two = takeSecond(two, values[at]!);
    }
    first[row] = one;
    second[row] = two;
  }
}

/** By their bits, so that -0 is not 0; but there are many NaN, and all of them are one value. */
function foldFloats(data: Data, lanes: Lanes): void {
  const { values } = data;
  const canonical = values.slice() as Float32Array | Float64Array;
  for (let row = 0; row < canonical.length; row++) {
    if (Number.isNaN(canonical[row])) canonical[row] = Number.NaN;
  }
  const words = canonical.BYTES_PER_ELEMENT / 4;
  const bits = new Int32Array(canonical.buffer, canonical.byteOffset, canonical.length * words);
  foldWords(withValues(data, bits), lanes, words);
}

function foldBits(data: Data, lanes: Lanes): void {
  const bits = new Int32Array(data.length);
  for (let row = 0; row < data.length; row++) bits[row] = isUnset(data.values, data.offset + row) ? 0 : 1;
  foldWords(withValues(data, bits), lanes, 1);
}

/** Only what `foldWords` reads. */
function withValues({ length, offset, nullCount, nullBitmap }: Data, values: Int32Array): Data {
  return { length, offset, nullCount, nullBitmap, values } as unknown as Data;
}

function foldBytes(data: Data, lanes: Lanes): void {
  const { length } = data;
  const { valueOffsets } = data as unknown as { valueOffsets: Int32Array | BigInt64Array };
  const offsets = valueOffsets instanceof Int32Array ? valueOffsets : Float64Array.from(valueOffsets, Number);
  const validity = validityOf(data);
  for (let row = 0; row < length; row++) {
    if (validity !== null && isUnset(validity, data.offset + row)) takeNull(lanes, row);
    else takeBytes(lanes, row, data.values, offsets[row]!, offsets[row + 1]!);
  }
}

function foldFixed(data: Data, lanes: Lanes): void {
  const width = (data.type as unknown as { byteWidth: number }).byteWidth;
  const validity = validityOf(data);
  for (let row = 0; row < data.length; row++) {
    if (validity !== null && isUnset(validity, data.offset + row)) takeNull(lanes, row);
    else takeBytes(lanes, row, data.values, row * width, row * width + width);
  }
}

/** For pairs whose sides have different types: slower, and right for each of them. */
function foldTexts(data: Data, form: Form, lanes: Lanes): void {
  const textOf = canonicalText(data, form);
  for (let row = 0; row < data.length; row++) {
    const text = textOf(row);
    if (text === null) takeNull(lanes, row);
    else {
      const bytes = Buffer.from(text);
      takeBytes(lanes, row, bytes, 0, bytes.length);
    }
  }
}

function takeNull({ first, second }: Lanes, row: number): void {
  first[row] = takeFirst(first[row]!, NULL_FIRST);
  second[row] = takeSecond(second[row]!, NULL_SECOND);
}

function takeBytes({ first, second }: Lanes, row: number, bytes: Uint8Array, start: number, end: number): void {
  let one = takeFirst(first[row]!, end - start);
  let two = takeSecond(second[row]!, end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) {
    const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    one = takeFirst(one, word);
    two = takeSecond(two, word);
  }
  if (at < end) {
    let word = 0;
    for (let shift = 0; at < end; at++, shift += 8) word |= bytes[at]! << shift;
    one = takeFirst(one, word);
    two = takeSecond(two, word);
  }
  first[row] = one;
  second[row] = two;
}

import type { Column } from '@urutau/sdk';
import type { FieldEncoder, Selection, TupleFrame } from './field-encoder.ts';

/*
 * The server's binary numeric: count of digits, weight of the first, sign and display scale (16 bits each), then the
 * digits in base 10000, aligned to the decimal point.
 */
const HEADER_BYTES = 8;
const SIGN_MINUS = 0x4000;
const BASE = 10_000;
const DIGITS_PER_GROUP = 4;
const TWO_32 = 4_294_967_296;

/** Decimals and whole numbers as numeric, exactly. Values below 2^53 take a path without big integers. */
export function numericEncoder(column: Column): FieldEncoder {
  const { validity } = column;
  const unscaled = unscaledOf(column);
  const { words, wordsPerValue, scale } = unscaled;
  const pad = -scale & (DIGITS_PER_GROUP - 1);
  const factor = 10 ** pad;
  const safeMax = Math.floor(Number.MAX_SAFE_INTEGER / factor);
  const fractionGroups = Math.ceil(Math.max(scale, 0) / DIGITS_PER_GROUP);

  /** The unscaled value as a number, or NaN where only a big integer holds it. */
  function small(row: number): number {
    const at = row * wordsPerValue;
    const high = words[at + 1]! | 0;
    const sign = unscaled.signed ? high >> 31 : 0;
    for (let word = 2; word < wordsPerValue; word++) if ((words[at + word]! | 0) !== sign) return Number.NaN;
    const value = (unscaled.signed ? high : high >>> 0) * TWO_32 + words[at]!;
    return value <= safeMax && value >= -safeMax ? value : Number.NaN;
  }

  function groupsOf(row: number): number {
    const value = scale < 0 ? Number.NaN : small(row);
    if (Number.isNaN(value)) return bigGroups(bigUnscaled(unscaled, row), scale).length;
    const aligned = Math.abs(value) * factor;
    if (aligned === 0) return 0;
    return aligned < 1e4 ? 1 : aligned < 1e8 ? 2 : aligned < 1e12 ? 3 : 4;
  }

  return {
    measure({ rows, tuples, length }: Selection, sizes: Int32Array) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const isNull = validity !== null && (validity[row >> 3]! & (1 << (row & 7))) === 0;
        sizes[tuples[i]!]! += isNull ? 4 : 4 + HEADER_BYTES + 2 * groupsOf(row);
      }
    },
    write({ rows, tuples, length }: Selection, { view, cursors }: TupleFrame) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (validity !== null && (validity[row >> 3]! & (1 << (row & 7))) === 0) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
          continue;
        }
        const value = scale < 0 ? Number.NaN : small(row);
        const big = Number.isNaN(value) ? bigUnscaled(unscaled, row) : null;
        const bigDigits = big === null ? null : bigGroups(big, scale);
        const groups = bigDigits === null ? groupsOf(row) : bigDigits.length;
        view.setInt32(at, HEADER_BYTES + 2 * groups);
        view.setInt16(at + 4, groups);
        view.setInt16(at + 6, groups === 0 ? 0 : groups - 1 - fractionGroups);
        view.setUint16(at + 8, (big === null ? value < 0 : big < 0n) ? SIGN_MINUS : 0);
        view.setUint16(at + 10, Math.max(scale, 0));
        const digitsAt = at + 12;
        if (bigDigits !== null) {
          for (let group = 0; group < groups; group++) view.setUint16(digitsAt + 2 * group, bigDigits[group]!);
        } else {
          let rest = Math.abs(value) * factor;
          for (let group = groups - 1; group >= 0; group--) {
            const next = Math.floor(rest / BASE);
            view.setUint16(digitsAt + 2 * group, rest - next * BASE);
            rest = next;
          }
        }
        cursors[tuples[i]!] = digitsAt + 2 * groups;
      }
    },
  };
}

/** Two's complement words, least first. The value of row i is the whole number at i, divided by 10^scale. */
interface Unscaled {
  words: Uint32Array;
  wordsPerValue: number;
  scale: number;
  signed: boolean;
}

function unscaledOf(column: Column): Unscaled {
  switch (column.kind) {
    case 'decimal':
      return {
        words: asWords(column.bytes),
        wordsPerValue: column.bytesPerValue / 4,
        scale: column.scale,
        signed: true,
      };
    case 'int64':
    case 'uint64':
      return { words: column.halves, wordsPerValue: 2, scale: 0, signed: column.kind === 'int64' };
    case 'int8':
    case 'int16':
    case 'int32':
    case 'uint8':
    case 'uint16':
    case 'uint32': {
      const wide = BigInt64Array.from(column.values, BigInt);
      return { words: new Uint32Array(wide.buffer), wordsPerValue: 2, scale: 0, signed: true };
    }
    default:
      throw new Error(`column ${column.field.name} of kind ${column.kind} was planned as numeric`);
  }
}

function asWords(bytes: Uint8Array): Uint32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : Uint8Array.from(bytes);
  return new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.length >> 2);
}

function bigUnscaled({ words, wordsPerValue, signed }: Unscaled, row: number): bigint {
  let value = 0n;
  for (let word = wordsPerValue - 1; word >= 0; word--) {
    value = (value << 32n) | BigInt(words[row * wordsPerValue + word]!);
  }
  return signed ? BigInt.asIntN(32 * wordsPerValue, value) : value;
}

/** Digits in base 10000, the first not zero; with fraction groups filled up to the decimal point's alignment. */
function bigGroups(unscaled: bigint, scale: number): number[] {
  const digits = `${unscaled < 0n ? -unscaled : unscaled}${'0'.repeat(scale < 0 ? -scale : -scale & 3)}`;
  const aligned = digits.padStart(Math.ceil(digits.length / DIGITS_PER_GROUP) * DIGITS_PER_GROUP, '0');
  const groups: number[] = [];
  for (let at = 0; at < aligned.length; at += DIGITS_PER_GROUP) groups.push(Number(aligned.slice(at, at + 4)));
  const first = groups.findIndex((group) => group !== 0);
  return first < 0 ? [] : groups.slice(first);
}

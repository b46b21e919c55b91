import {
  type BoolBuilder,
  type BytesBuilder,
  type ColumnBuilder,
  type DecimalBuilder,
  type FixedBytesBuilder,
  type Float32Builder,
  type Float64Builder,
  type Int32Builder,
  type Int64Builder,
  type Kind,
  LIMIT,
  UrutauError,
} from '@urutau/sdk';
import { DateTimeText } from './date-time-text.ts';
import { readDouble, readFloat } from './float-text.ts';
import { latin1 } from './latin1.ts';
import { EXPECTED, largeValue, malformedValue, refusedValue } from './refused-value.ts';

/**
 * Appends the value of `length` bytes at `start`; NULL is the caller's. Throws `row-refused` with the column for a
 * value that the kind cannot hold, `row-too-large`, and `protocol-violation` for what is no value of the type.
 */
export type ValueAppender = (bytes: Uint8Array, start: number, length: number) => void;

/** The settings of a session on which the text form of values relies. */
export const TEXT_SETTINGS = {
  client_encoding: 'UTF8',
  DateStyle: 'ISO, YMD',
  bytea_output: 'hex',
  extra_float_digits: '1',
} as const;

/** The appender for pgoutput's text form of a kind. `builder` must be the one of `builderFor` for the same column. */
export function textAppender(kind: Kind, builder: ColumnBuilder, column: string): ValueAppender {
  switch (kind) {
    case 'bool':
      return boolAppender(builder as BoolBuilder, column);
    case 'int32':
      return int32Appender(builder as Int32Builder, column);
    case 'int64':
    case 'uint64':
      return int64Appender(builder as Int64Builder, column);
    case 'float32':
      return floatAppender(builder as Float32Builder, readFloat, column);
    case 'float64':
      return floatAppender(builder as Float64Builder, readDouble, column);
    case 'string':
    case 'json':
      return bytesAppender(builder as BytesBuilder, column);
    case 'binary':
      return hexAppender(builder as BytesBuilder, column);
    case 'date':
      return dateAppender(builder as Int32Builder, column);
    case 'time':
      return timeAppender(builder as Int64Builder, column);
    case 'timestamp':
    case 'timestamptz':
      return timestampAppender(kind, builder as Int64Builder, column);
    case 'uuid':
      return uuidAppender(builder as FixedBytesBuilder, column);
    case 'struct':
    case 'list':
    case 'map':
      throw new UrutauError('type-unsupported', `column ${column}: kind ${kind} cannot be read yet`, { column });
    default:
      return parametricAppender(kind, builder, column);
  }
}

function boolAppender(builder: BoolBuilder, column: string): ValueAppender {
  return (bytes, start, length) => {
    const letter = bytes[start];
    if (length !== 1 || (letter !== LETTER_T && letter !== LETTER_F)) throw otherText(column, 't or f');
    builder.append(letter === LETTER_T);
  };
}

const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const LETTER_F = 0x66;
const LETTER_T = 0x74;

function int32Appender(builder: Int32Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    const value = readInteger(bytes, start, start + length, column);
    if ((value | 0) !== value) throw otherText(column, 'an integer of 32 bits');
    builder.append(value);
  };
}

/** For at most 15 digits, which a double holds exactly. */
function readInteger(bytes: Uint8Array, start: number, end: number, column: string): number {
  const negative = bytes[start] === MINUS;
  let at = negative ? start + 1 : start;
  if (at >= end) throw otherText(column, 'an integer');
  let value = 0;
  for (; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit >>> 0 > 9) throw otherText(column, 'an integer');
    value = value * 10 + digit;
  }
  return negative && value !== 0 ? -value : value;
}

const EXACT_DIGITS = 15;

function int64Appender(builder: Int64Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length <= EXACT_DIGITS) builder.appendNumber(readInteger(bytes, start, start + length, column));
    else builder.appendBigInt(readLongInteger(bytes, start, length, column));
  };
}

function readLongInteger(bytes: Uint8Array, start: number, length: number, column: string): bigint {
  const text = latin1(bytes, start, length);
  if (!/^-?\d{15,19}$/.test(text)) throw otherText(column, 'an integer of 64 bits');
  const value = BigInt(text);
  if (BigInt.asIntN(64, value) !== value) throw otherText(column, 'an integer of 64 bits');
  return value;
}

function floatAppender(
  builder: Float32Builder | Float64Builder,
  read: (bytes: Uint8Array, start: number, length: number) => number | undefined,
  column: string,
): ValueAppender {
  return (bytes, start, length) => {
    const value = read(bytes, start, length);
    if (value === undefined) throw otherText(column, 'a floating-point number');
    builder.append(value);
  };
}

function bytesAppender(builder: BytesBuilder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length > LIMIT.messageBytesMax) throw largeValue(column, length);
    builder.append(bytes, start, length);
  };
}

function hexAppender(builder: BytesBuilder, column: string): ValueAppender {
  const small = new Uint8Array(4096);
  return (bytes, start, length) => {
    const count = (length - 2) >> 1;
    if (length < 2 || length & 1 || bytes[start] !== BACKSLASH || bytes[start + 1] !== LETTER_X) {
      throw otherText(column, 'hexadecimal bytes (bytea_output = hex)');
    }
    if (count > LIMIT.messageBytesMax) throw largeValue(column, count);
    const value = count <= small.length ? small : new Uint8Array(count);
    let wrong = 0;
    for (let i = 0, at = start + 2; i < count; i++, at += 2) {
      const high = NIBBLE[bytes[at]!]!;
      const low = NIBBLE[bytes[at + 1]!]!;
      wrong |= high | low;
      value[i] = (high << 4) | low;
    }
    if (wrong > 15) throw otherText(column, 'hexadecimal bytes');
    builder.append(value, 0, count);
  };
}

const BACKSLASH = 0x5c;
const LETTER_X = 0x78;

/** The value of a hexadecimal digit; 255 for any other byte. */
const NIBBLE = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return digit < 0 ? 255 : digit;
});

function dateAppender(builder: Int32Builder, column: string): ValueAppender {
  const text = new DateTimeText();
  return (bytes, start, length) => {
    if (!text.readDate(bytes, start, length)) throw noDate(bytes, start, length, column, EXPECTED.date);
    builder.append(text.days);
  };
}

/** Infinite is a value of the type that the kind cannot hold; anything else is no value of the type. */
function noDate(bytes: Uint8Array, start: number, length: number, column: string, expected: string): UrutauError {
  const text = latin1(bytes, start, length);
  return text === 'infinity' || text === '-infinity'
    ? refusedValue(column, expected, text)
    : otherText(column, `${expected} (DateStyle = ISO)`);
}

const DAY_MICROS = 86_400_000_000;

function timeAppender(builder: Int64Builder, column: string): ValueAppender {
  const text = new DateTimeText();
  return (bytes, start, length) => {
    if (!text.readTime(bytes, start, length)) throw otherText(column, EXPECTED.time);
    if (text.micros >= DAY_MICROS) throw refusedValue(column, EXPECTED.time, '24:00:00');
    builder.appendNumber(text.micros);
  };
}

/** Days for which microseconds stay below 2^53, with room for a zone. */
const EXACT_DAYS = 100_000;

function timestampAppender(kind: 'timestamp' | 'timestamptz', builder: Int64Builder, column: string): ValueAppender {
  const text = new DateTimeText();
  return (bytes, start, length) => {
    const read =
      kind === 'timestamp' ? text.readTimestamp(bytes, start, length) : text.readTimestamptz(bytes, start, length);
    if (!read) throw noDate(bytes, start, length, column, EXPECTED.timestamp);
    const seconds = text.days * 86_400 - text.zoneSeconds;
    if (text.days < EXACT_DAYS && text.days > -EXACT_DAYS) {
      builder.appendNumber(seconds * 1_000_000 + text.micros);
      return;
    }
    const micros = BigInt(seconds) * 1_000_000n + BigInt(text.micros);
    if (BigInt.asIntN(64, micros) !== micros) throw refusedValue(column, EXPECTED.timestamp, 'a later one');
    builder.appendBigInt(micros);
  };
}

/** Where each byte's two digits stand in the text of a uuid. */
const UUID_DIGITS = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34);
const UUID_TEXT_BYTES = 36;

function uuidAppender(builder: FixedBytesBuilder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== UUID_TEXT_BYTES) throw otherText(column, 'a uuid');
    const slot = builder.appendSlot();
    const target = slot.bytes;
    let wrong = 0;
    for (let i = 0; i < UUID_DIGITS.length; i++) {
      const at = start + UUID_DIGITS[i]!;
      const high = NIBBLE[bytes[at]!]!;
      const low = NIBBLE[bytes[at + 1]!]!;
      wrong |= high | low;
      target[slot.at + i] = (high << 4) | low;
    }
    if (wrong > 15) throw otherText(column, 'a uuid');
  };
}

function parametricAppender(
  kind: `decimal(${number},${number})` | `fixed(${number})`,
  builder: ColumnBuilder,
  column: string,
): ValueAppender {
  const decimal = /^decimal\((\d+),(\d+)\)$/.exec(kind);
  if (decimal === null) {
    throw new UrutauError('type-unsupported', `column ${column}: no type of Postgres has the kind ${kind}`, { column });
  }
  return decimalAppender(builder as DecimalBuilder, Number(decimal[1]), Number(decimal[2]), column);
}

function decimalAppender(builder: DecimalBuilder, precision: number, scale: number, column: string): ValueAppender {
  const limit = precision <= EXACT_DIGITS ? 10 ** precision : Infinity;
  return (bytes, start, length) => {
    const end = start + length;
    const negative = bytes[start] === MINUS;
    let unscaled = 0;
    let digits = 0;
    let point = -1;
    for (let at = negative ? start + 1 : start; at < end; at++) {
      const digit = bytes[at]! - ZERO;
      if (digit >>> 0 <= 9) {
        unscaled = unscaled * 10 + digit;
        digits++;
      } else if (bytes[at] === POINT && point < 0) {
        point = at + 1;
      } else {
        digits = Infinity;
        break;
      }
    }
    const missing = scale - (point < 0 ? 0 : end - point);
    if (digits > 0 && missing >= 0 && digits + missing <= EXACT_DIGITS) {
      const value = missing === 0 ? unscaled : unscaled * 10 ** missing;
      if (value >= limit) throw refusedValue(column, EXPECTED.decimal(precision, scale), 'one of more');
      builder.appendNumber(negative && value !== 0 ? -value : value);
    } else {
      builder.appendBigInt(readLongDecimal(latin1(bytes, start, length), precision, scale, column));
    }
  };
}

/** The unscaled value. */
function readLongDecimal(text: string, precision: number, scale: number, column: string): bigint {
  const parts = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
  if (parts === null) {
    if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') {
      throw refusedValue(column, EXPECTED.decimal(precision, scale), text);
    }
    throw otherText(column, 'a decimal number');
  }
  const [, sign, integer = '', fraction = ''] = parts;
  const digits = integer + fraction.slice(0, scale).padEnd(scale, '0');
  if (/[^0]/.test(fraction.slice(scale)) || digits.replace(/^0+/, '').length > precision) {
    throw refusedValue(column, EXPECTED.decimal(precision, scale), 'one of more');
  }
  return BigInt(sign + digits);
}

function otherText(column: string, expected: string): UrutauError {
  return malformedValue(column, expected, 'other text');
}

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
  LIMIT,
  UrutauError,
  UUID_BYTES,
} from '@urutau/sdk';
import { OID, type SupportedType } from '../types.ts';
import { NumericBinary } from './numeric-binary.ts';
import { EXPECTED, largeValue, malformedValue, refusedValue } from './refused-value.ts';
import type { ValueAppender } from './text-values.ts';

/**
 * The appender for COPY's binary form, of `column::text` where `copyAsText` asks for it. The value is the same, byte
 * for byte, as `textAppender` makes of the stream's text. `builder` must be the one of `builderFor` for the column.
 */
export function binaryAppender(
  { kind, baseOid }: SupportedType,
  builder: ColumnBuilder,
  column: string,
): ValueAppender {
  switch (kind) {
    case 'bool':
      return boolAppender(builder as BoolBuilder, column);
    case 'int32':
      return baseOid === OID.int2
        ? int16Appender(builder as Int32Builder, column)
        : int32Appender(builder as Int32Builder, column);
    case 'int64':
      return int64Appender(builder as Int64Builder, column);
    case 'uint64':
      return oidAppender(builder as Int64Builder, column);
    case 'float32':
      return float32Appender(builder as Float32Builder, column);
    case 'float64':
      return float64Appender(builder as Float64Builder, column);
    case 'string':
      return baseOid === OID.numeric
        ? numericTextAppender(builder as BytesBuilder, column)
        : bytesAppender(builder as BytesBuilder, column);
    case 'binary':
      return bytesAppender(builder as BytesBuilder, column);
    case 'json':
      return baseOid === OID.jsonb
        ? jsonbAppender(builder as BytesBuilder, column)
        : bytesAppender(builder as BytesBuilder, column);
    case 'date':
      return dateAppender(builder as Int32Builder, column);
    case 'time':
      return timeAppender(builder as Int64Builder, column);
    case 'timestamp':
    case 'timestamptz':
      return timestampAppender(builder as Int64Builder, column);
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
    const value = bytes[start]!;
    if (length !== 1 || value > 1) throw otherBytes(column, 'the byte 0 or 1', length);
    builder.append(value === 1);
  };
}

function int16Appender(builder: Int32Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 2) throw otherBytes(column, '2 bytes', length);
    builder.append(((bytes[start]! << 24) | (bytes[start + 1]! << 16)) >> 16);
  };
}

function int32Appender(builder: Int32Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 4) throw otherBytes(column, '4 bytes', length);
    builder.append(int32At(bytes, start));
  };
}

function int32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

function int64Appender(builder: Int64Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 8) throw otherBytes(column, '8 bytes', length);
    builder.appendHalves(int32At(bytes, start + 4), int32At(bytes, start));
  };
}

function oidAppender(builder: Int64Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 4) throw otherBytes(column, '4 bytes', length);
    builder.appendHalves(int32At(bytes, start), 0);
  };
}

/** The server has NaNs of several bits and prints one: each becomes the same NaN as from the text. */
function float32Appender(builder: Float32Builder, column: string): ValueAppender {
  const scratch = new DataView(new ArrayBuffer(4));
  return (bytes, start, length) => {
    if (length !== 4) throw otherBytes(column, '4 bytes', length);
    scratch.setInt32(0, int32At(bytes, start));
    const value = scratch.getFloat32(0);
    builder.append(Number.isNaN(value) ? Number.NaN : value);
  };
}

function float64Appender(builder: Float64Builder, column: string): ValueAppender {
  const scratch = new DataView(new ArrayBuffer(8));
  return (bytes, start, length) => {
    if (length !== 8) throw otherBytes(column, '8 bytes', length);
    scratch.setInt32(0, int32At(bytes, start));
    scratch.setInt32(4, int32At(bytes, start + 4));
    const value = scratch.getFloat64(0);
    builder.append(Number.isNaN(value) ? Number.NaN : value);
  };
}

function numericTextAppender(builder: BytesBuilder, column: string): ValueAppender {
  const numeric = new NumericBinary();
  return (bytes, start, length) => {
    if (!numeric.read(bytes, start, length)) throw otherBytes(column, 'a numeric', length);
    const text = numeric.text();
    builder.append(text, 0, text.length);
  };
}

function bytesAppender(builder: BytesBuilder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length > LIMIT.messageBytesMax) throw largeValue(column, length);
    builder.append(bytes, start, length);
  };
}

const JSONB_VERSION = 1;

function jsonbAppender(builder: BytesBuilder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length < 1 || bytes[start] !== JSONB_VERSION) throw otherBytes(column, 'jsonb of version 1', length);
    if (length > LIMIT.messageBytesMax) throw largeValue(column, length);
    builder.append(bytes, start + 1, length - 1);
  };
}

/** From 1970-01-01 to 2000-01-01, where the server's calendar begins. */
const EPOCH_DAYS = 10_957;
const INT32_MAX = 0x7fff_ffff;
const INT32_MIN = -0x8000_0000;

function dateAppender(builder: Int32Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 4) throw otherBytes(column, '4 bytes', length);
    const days = int32At(bytes, start);
    if (days === INT32_MAX) throw refusedValue(column, EXPECTED.date, 'infinity');
    if (days === INT32_MIN) throw refusedValue(column, EXPECTED.date, '-infinity');
    builder.append(days + EPOCH_DAYS);
  };
}

const TWO_32 = 4_294_967_296;
const DAY_MICROS = 86_400_000_000;

function timeAppender(builder: Int64Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 8) throw otherBytes(column, '8 bytes', length);
    const micros = int32At(bytes, start) * TWO_32 + (int32At(bytes, start + 4) >>> 0);
    if (micros >= DAY_MICROS) throw refusedValue(column, EXPECTED.time, '24:00:00');
    builder.appendNumber(micros);
  };
}

const EPOCH_MICROS_HIGH = Math.floor(946_684_800_000_000 / TWO_32);
const EPOCH_MICROS_LOW = 946_684_800_000_000 % TWO_32;

function timestampAppender(builder: Int64Builder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== 8) throw otherBytes(column, '8 bytes', length);
    const serverHigh = int32At(bytes, start);
    const serverLow = int32At(bytes, start + 4) >>> 0;
    if (serverHigh === INT32_MIN && serverLow === 0) throw refusedValue(column, EXPECTED.timestamp, '-infinity');
    const low = serverLow + EPOCH_MICROS_LOW;
    const high = serverHigh + EPOCH_MICROS_HIGH + (low >= TWO_32 ? 1 : 0);
    if (high > INT32_MAX) {
      const infinite = serverHigh === INT32_MAX && serverLow === TWO_32 - 1;
      throw refusedValue(column, EXPECTED.timestamp, infinite ? 'infinity' : 'a later one');
    }
    builder.appendHalves(low, high);
  };
}

function uuidAppender(builder: FixedBytesBuilder, column: string): ValueAppender {
  return (bytes, start, length) => {
    if (length !== UUID_BYTES) throw otherBytes(column, `${UUID_BYTES} bytes`, length);
    const slot = builder.appendSlot();
    const target = slot.bytes;
    for (let i = 0; i < UUID_BYTES; i++) target[slot.at + i] = bytes[start + i]!;
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
  const numeric = new NumericBinary();
  const limit = 10n ** BigInt(precision);
  const numberLimit = Number(limit);
  return (bytes, start, length) => {
    if (!numeric.read(bytes, start, length)) throw otherBytes(column, 'a numeric', length);
    if (numeric.special !== null) throw refusedValue(column, EXPECTED.decimal(precision, scale), numeric.special);
    const small = numeric.unscaledNumber(scale);
    if (small !== undefined) {
      if (Math.abs(small) >= numberLimit) throw refusedValue(column, EXPECTED.decimal(precision, scale), 'one of more');
      builder.appendNumber(small);
      return;
    }
    const unscaled = numeric.unscaledBigInt(scale);
    if (unscaled === undefined || unscaled >= limit || unscaled <= -limit) {
      throw refusedValue(column, EXPECTED.decimal(precision, scale), 'one of more');
    }
    builder.appendBigInt(unscaled);
  };
}

function otherBytes(column: string, expected: string, length: number): UrutauError {
  return malformedValue(column, expected, `another value of ${length} bytes`);
}

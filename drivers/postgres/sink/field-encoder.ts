import type { Column } from '@urutau/sdk';
import { numericEncoder } from './numeric-encoder.ts';
import type { PgForm } from './pg-form.ts';
import { RefusedValue } from './refused-value.ts';

/** The tuples of one CopyData message while they are filled column by column. */
export interface TupleFrame {
  readonly bytes: Buffer;
  readonly view: DataView;
  /** Where the next field of tuple i goes. */
  readonly cursors: Int32Array;
}

/** Row `rows[i]` of a column becomes the field of tuple `tuples[i]`. */
export interface Selection {
  readonly rows: Int32Array;
  readonly tuples: Int32Array;
  readonly length: number;
}

/**
 * Writes one column in COPY's binary form, in two passes: `measure` adds each field's bytes (with its length word) to
 * `sizes[tuple]`, `write` puts them. Throws RefusedValue for a value that the form cannot hold.
 */
export interface FieldEncoder {
  measure(selection: Selection, sizes: Int32Array): void;
  write(selection: Selection, frame: TupleFrame): void;
}

/** `form` was chosen for the column's kind by column-plan.ts. */
export function fieldEncoder(column: Column, form: PgForm): FieldEncoder {
  switch (form) {
    case 'bool':
      return boolEncoder(column as Of<'bool'>);
    case 'int2':
      return int2Encoder(column as SmallInt);
    case 'int4':
      return int4Encoder(column as SmallInt);
    case 'int8':
      return 'halves' in column ? int64Encoder(column, NO_SHIFT) : int8Encoder(column as SmallInt);
    case 'oid':
      return oidEncoder(column as Of<'uint64'>);
    case 'float4':
      return float4Encoder(column as Of<'float32'>);
    case 'float8':
      return float8Encoder(column as Of<'float64'> | Of<'float32'>);
    case 'numeric':
      return numericEncoder(column);
    case 'text':
    case 'bytea':
      return 'width' in column ? fixedBytesEncoder(column as FixedColumn) : bytesEncoder(column as BytesColumn, null);
    case 'jsonb':
      return bytesEncoder(column as BytesColumn, JSONB_VERSION);
    case 'uuid':
      return fixedBytesEncoder(column as FixedColumn);
    case 'date':
      return dateEncoder(column as Of<'date'>);
    case 'time':
      return int64Encoder(column as Of<'time'>, NO_SHIFT);
    case 'timestamp':
      return int64Encoder(inMicroseconds(column as TimestampColumn), SINCE_2000);
  }
}

type Of<K extends Column['kind']> = Extract<Column, { kind: K }>;
type BytesColumn = Of<'string' | 'json' | 'binary'>;
type FixedColumn = Of<'fixed' | 'uuid'>;
type TimestampColumn = Of<'timestamp' | 'timestamptz'>;
type SmallInt = Extract<Column, { kind: 'int8' | 'int16' | 'int32' | 'uint8' | 'uint16' | 'uint32' }>;

const NULL_BYTES = 4;
const JSONB_VERSION = 1;

function missing(validity: Uint8Array | null, row: number): boolean {
  return validity !== null && (validity[row >> 3]! & (1 << (row & 7))) === 0;
}

/** Every field with a value has `width` bytes. */
function measureFixed({ validity }: Column, width: number): FieldEncoder['measure'] {
  return ({ rows, tuples, length }, sizes) => {
    for (let i = 0; i < length; i++) {
      sizes[tuples[i]!]! += missing(validity, rows[i]!) ? NULL_BYTES : NULL_BYTES + width;
    }
  };
}

// One loop for each width and kind, written out: a shared loop that calls a function per cell is twice as slow.

function boolEncoder(column: Of<'bool'>): FieldEncoder {
  const { bits, validity } = column;
  return {
    measure: measureFixed(column, 1),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          view.setInt32(at, 1);
          view.setUint8(at + 4, (bits[row >> 3]! >> (row & 7)) & 1);
          cursors[tuples[i]!] = at + 5;
        }
      }
    },
  };
}

function int2Encoder(column: SmallInt): FieldEncoder {
  const { values, validity, field } = column;
  return {
    measure: measureFixed(column, 2),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          const value = values[row]!;
          if (value < -32768 || value > 32767)
            throw new RefusedValue(field.name, row, 'the integer is out of the range of smallint');
          view.setInt32(at, 2);
          view.setInt16(at + 4, value);
          cursors[tuples[i]!] = at + 6;
        }
      }
    },
  };
}

function int4Encoder(column: SmallInt): FieldEncoder {
  const { values, validity } = column;
  return {
    measure: measureFixed(column, 4),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          view.setInt32(at, 4);
          view.setInt32(at + 4, values[row]!);
          cursors[tuples[i]!] = at + 8;
        }
      }
    },
  };
}

function int8Encoder(column: SmallInt): FieldEncoder {
  const { values, validity } = column;
  return {
    measure: measureFixed(column, 8),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          const value = values[row]!;
          view.setInt32(at, 8);
          view.setInt32(at + 4, value < 0 ? -1 : 0);
          view.setUint32(at + 8, value);
          cursors[tuples[i]!] = at + 12;
        }
      }
    },
  };
}

function oidEncoder(column: Of<'uint64'>): FieldEncoder {
  const { halves, validity, field } = column;
  return {
    measure: measureFixed(column, 4),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          if (halves[2 * row + 1] !== 0)
            throw new RefusedValue(field.name, row, 'the integer is out of the range of oid');
          view.setInt32(at, 4);
          view.setUint32(at + 4, halves[2 * row]!);
          cursors[tuples[i]!] = at + 8;
        }
      }
    },
  };
}

/** What is subtracted from each value, and the least high word that the result may have. */
interface Shift {
  low: number;
  high: number;
  highMin: number;
}

const NO_SHIFT: Shift = { low: 0, high: 0, highMin: -2147483648 };

/**
 * Microseconds from 1970 to 2000. The server's type begins in 4713 BC; its end in 294276 is beyond what 64 bits can
 * count from 1970, and so are the integers that mean ±infinity, once the least years are refused here.
 */
const EPOCH_MICROS = 946_684_800_000_000n;
const SINCE_2000: Shift = {
  low: Number(EPOCH_MICROS & 0xffff_ffffn),
  high: Number(EPOCH_MICROS >> 32n),
  highMin: Number(-211_813_488_000_000_000n >> 32n),
};

function int64Encoder(column: Column & { halves: Uint32Array }, shift: Shift): FieldEncoder {
  const { halves, validity, field } = column;
  return {
    measure: measureFixed(column, 8),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          const low = halves[2 * row]! - shift.low;
          const high = (halves[2 * row + 1]! | 0) - shift.high - (low < 0 ? 1 : 0);
          if (high < shift.highMin) {
            throw new RefusedValue(field.name, row, 'the time is before 4713 BC, where the type begins');
          }
          view.setInt32(at, 8);
          view.setInt32(at + 4, high);
          view.setInt32(at + 8, low);
          cursors[tuples[i]!] = at + 12;
        }
      }
    },
  };
}

/** Other units come from drivers of databases that have them. A nanosecond that is no whole microsecond is refused. */
function inMicroseconds(column: TimestampColumn): TimestampColumn {
  const { unitsPerSecond, values, length, validity, field } = column;
  if (unitsPerSecond === 1_000_000n) return column;
  const micros = new BigInt64Array(length);
  for (let row = 0; row < length; row++) {
    if (missing(validity, row)) continue;
    const scaled = values[row]! * 1_000_000n;
    const value = scaled / unitsPerSecond;
    if (value * unitsPerSecond !== scaled)
      throw new RefusedValue(field.name, row, 'the time has parts of a microsecond');
    if (value !== BigInt.asIntN(64, value))
      throw new RefusedValue(field.name, row, 'the time is out of the range of timestamp');
    micros[row] = value;
  }
  return { ...column, unitsPerSecond: 1_000_000n, values: micros, halves: new Uint32Array(micros.buffer) };
}

const DAYS_1970_TO_2000 = 10_957;
/** The range of the server's date in days since 2000; beyond it are the integers that mean ±infinity. */
const DAYS_MIN = -2_451_545;
const DAYS_MAX = 2_145_031_948;

function dateEncoder(column: Of<'date'>): FieldEncoder {
  const { values, validity, field } = column;
  return {
    measure: measureFixed(column, 4),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          const days = values[row]! - DAYS_1970_TO_2000;
          if (days < DAYS_MIN || days > DAYS_MAX)
            throw new RefusedValue(field.name, row, 'the day is out of the range of date');
          view.setInt32(at, 4);
          view.setInt32(at + 4, days);
          cursors[tuples[i]!] = at + 8;
        }
      }
    },
  };
}

function float4Encoder(column: Of<'float32'>): FieldEncoder {
  const { values, validity } = column;
  return {
    measure: measureFixed(column, 4),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          view.setInt32(at, 4);
          view.setFloat32(at + 4, values[row]!);
          cursors[tuples[i]!] = at + 8;
        }
      }
    },
  };
}

function float8Encoder(column: Of<'float64'> | Of<'float32'>): FieldEncoder {
  const { values, validity } = column;
  return {
    measure: measureFixed(column, 8),
    write({ rows, tuples, length }, { view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          view.setInt32(at, 8);
          view.setFloat64(at + 4, values[row]!);
          cursors[tuples[i]!] = at + 12;
        }
      }
    },
  };
}

/** Below this a loop beats the call that copies. */
const LOOP_BYTES_MAX = 48;

function bytesEncoder(column: BytesColumn, version: number | null): FieldEncoder {
  const { offsets, bytes: source, validity } = column;
  const prefix = version === null ? 0 : 1;
  // 64-bit offsets belong to the large types; a batch's body is far below 2^31 bytes.
  const starts = offsets instanceof Int32Array ? offsets : Int32Array.from(offsets, Number);
  return {
    measure({ rows, tuples, length }, sizes) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        sizes[tuples[i]!]! += missing(validity, row)
          ? NULL_BYTES
          : NULL_BYTES + prefix + starts[row + 1]! - starts[row]!;
      }
    },
    write({ rows, tuples, length }, { bytes, view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        let at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
          continue;
        }
        const start = starts[row]!;
        const size = starts[row + 1]! - start;
        view.setInt32(at, prefix + size);
        at += 4;
        if (version !== null) bytes[at++] = version;
        if (size <= LOOP_BYTES_MAX) for (let b = 0; b < size; b++) bytes[at + b] = source[start + b]!;
        else bytes.set(source.subarray(start, start + size), at);
        cursors[tuples[i]!] = at + size;
      }
    },
  };
}

function fixedBytesEncoder(column: FixedColumn): FieldEncoder {
  const { bytes: source, width, validity } = column;
  return {
    measure: measureFixed(column, width),
    write({ rows, tuples, length }, { bytes, view, cursors }) {
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        const at = cursors[tuples[i]!]!;
        if (missing(validity, row)) {
          view.setInt32(at, -1);
          cursors[tuples[i]!] = at + 4;
        } else {
          const start = row * width;
          view.setInt32(at, width);
          for (let b = 0; b < width; b++) bytes[at + 4 + b] = source[start + b]!;
          cursors[tuples[i]!] = at + 4 + width;
        }
      }
    },
  };
}

import { builderFor, type ColumnBuilder } from '@urutau/sdk';
import fc from 'fast-check';
import { type ColumnFacts, fieldFor, type SupportedType, typeOf } from '../../../../../drivers/postgres/types.ts';

/** Values of one type as the server writes them in both forms, and as they must lie in the column. */
export interface Form<Value> {
  facts: ColumnFacts;
  values: fc.Arbitrary<Value>;
  edges: Value[];
  text(value: Value): string;
  binary(value: Value): Buffer;
  /** As `columnValue` reads it. */
  expected(value: Value): unknown;
}

const SECOND = 1_000_000n;
const DAY = 86_400n * SECOND;
/** From 1970 to 2000, where the server's time begins. */
const EPOCH = BigInt(Date.UTC(2000, 0, 1)) * 1000n;
/** 4714-11-24 BC and 5874897-12-31, in days since 1970. */
const DATE_MIN = -2_440_588;
const DATE_MAX = 2_145_042_905;

/** 4713 BC, around year 1, of every length of fraction, beyond 2^53, and the last that fits. */
const TIME_EDGES = [
  BigInt(DATE_MIN + 1) * 86_400_000_000n,
  -62_135_596_800_000_000n,
  -62_135_596_800_000_001n,
  0n,
  -1n,
  ...[100_000n, 120_000n, 123_000n, 123_400n, 123_450n, 123_456n].map((fraction) => 1_709_164_799_000_000n + fraction),
  2n ** 53n,
  253_402_300_800_000_000n,
  2n ** 63n - 1n - 86_400_000_000n,
  2n ** 63n - 1n,
];

export const FORMS: Record<string, Form<never>> = {
  boolean: form<boolean>({
    facts: column(16),
    values: fc.boolean(),
    edges: [true, false],
    text: (value) => (value ? 't' : 'f'),
    binary: (value) => Buffer.from([value ? 1 : 0]),
    expected: (value) => value,
  }),
  smallint: integer(21, 2),
  integer: integer(23, 4),
  bigint: integer(20, 8),
  oid: form<bigint>({
    facts: column(26),
    values: fc.bigInt(0n, 2n ** 32n - 1n),
    edges: [0n, 2n ** 31n, 2n ** 32n - 1n],
    text: String,
    binary: (value) => signed(BigInt.asIntN(32, value), 4),
    expected: (value) => value,
  }),
  real: form<number>({
    facts: column(700),
    values: fc.float(),
    edges: [0, -0, 1.5, 0.1, 16_777_216, 3.4028234663852886e38, 1.401298464324817e-45, NaN, Infinity, -Infinity].map(
      Math.fround,
    ),
    text: (value) => (Object.is(value, -0) ? '-0' : exponential(shortestFloat(value))),
    binary: (value) => ieee(value, 4),
    expected: (value) => value,
  }),
  'double precision': form<number>({
    facts: column(701),
    values: fc.oneof(
      fc.double(),
      fc.double({ min: -1e6, max: 1e6 }),
      fc.integer({ min: -1e9, max: 1e9 }).map((n) => n / 100),
    ),
    edges: [0, -0, 0.1, 123456789012345.67, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, NaN, Infinity, -Infinity],
    text: (value) => (Object.is(value, -0) ? '-0' : exponential(String(value))),
    binary: (value) => ieee(value, 8),
    expected: (value) => value,
  }),
  'numeric(12,2)': decimal(12, 2),
  'numeric(15,15)': decimal(15, 15),
  'numeric(16,1)': decimal(16, 1),
  'numeric(38,0)': decimal(38, 0),
  'numeric(38,38)': decimal(38, 38),
  'numeric(20,7)': decimal(20, 7),
  numeric: form<Numeric>({
    facts: column(1700),
    values: numerics(200, 60),
    edges: [
      { unscaled: 0n, scale: 0 },
      { unscaled: 0n, scale: 5 },
      { unscaled: 1n, scale: 9 },
      { unscaled: -1_200n, scale: 2 },
      { unscaled: 10n ** 4n, scale: 0 },
      { unscaled: 10n ** 999n, scale: 300 },
      'NaN',
      'Infinity',
      '-Infinity',
    ],
    text: numericText,
    binary: numericBinary,
    expected: numericText,
  }),
  'numeric(5,-2)': form<Numeric>({
    facts: column(1700, typmod(5, -2)),
    values: fc.bigInt(-99_999n, 99_999n).map((hundreds) => ({ unscaled: hundreds * 100n, scale: 0 })),
    edges: [{ unscaled: -9_999_900n, scale: 0 }],
    text: numericText,
    binary: numericBinary,
    expected: numericText,
  }),
  text: string(
    25,
    fc.string({ unit: 'binary', maxLength: 80 }).filter((text) => !text.includes('\0')),
  ),
  money: string(790, fc.constant('$1,234.50')),
  jsonb: form<string>({
    facts: column(3802),
    values: fc.json(),
    edges: ['{}', 'null', '{"é": "ü"}'],
    text: (value) => value,
    binary: (value) => Buffer.concat([Buffer.from([1]), Buffer.from(value)]),
    expected: (value) => value,
  }),
  json: string(114, fc.json()),
  bytea: form<Uint8Array>({
    facts: column(17),
    values: fc.uint8Array({ maxLength: 100 }),
    edges: [new Uint8Array(0), new Uint8Array(10_000).fill(0xab)],
    text: (value) => `\\x${Buffer.from(value).toString('hex')}`,
    binary: (value) => Buffer.from(value),
    expected: (value) => Buffer.from(value).toString('hex'),
  }),
  uuid: form<Uint8Array>({
    facts: column(2950),
    values: fc.uint8Array({ minLength: 16, maxLength: 16 }),
    edges: [new Uint8Array(16), new Uint8Array(16).fill(255)],
    text: (value) =>
      Buffer.from(value)
        .toString('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    binary: (value) => Buffer.from(value),
    expected: (value) => Buffer.from(value).toString('hex'),
  }),
  date: form<number>({
    facts: column(1082),
    values: fc.oneof(fc.integer({ min: DATE_MIN, max: DATE_MAX }), fc.integer({ min: -800_000, max: 40_000 })),
    // 4714-11-24 BC, 0001-12-31 BC, 0001-01-01, leap days of 1900 BC (none), 2000 and 2024, 10000-01-01, 5874897-12-31.
    edges: [DATE_MIN, -719_163, -719_162, 11_016, 19_782, 2_932_897, DATE_MAX, 0, -1],
    text: (days) => withEra(days, ''),
    binary: (days) => signed(BigInt(days - 10_957), 4),
    expected: (days) => BigInt(days),
  }),
  time: form<bigint>({
    facts: column(1083),
    values: fc.oneof(
      fc.bigInt(0n, DAY - 1n),
      fc.bigInt(0n, 86_399n).map((seconds) => seconds * SECOND),
    ),
    edges: [0n, DAY - 1n, 1n, 100_000n, 120_000n, 123_000n, 123_400n, 123_450n],
    text: clock,
    binary: (value) => signed(value, 8),
    expected: (value) => value,
  }),
  timestamp: form<bigint>({
    facts: column(1114),
    values: times(),
    edges: TIME_EDGES,
    text: (micros) => withEra(dayOf(micros), ` ${clock(timeOf(micros))}`),
    binary: (micros) => signed(micros - EPOCH, 8),
    expected: (micros) => micros,
  }),
  timestamptz: form<{ micros: bigint; zoneSeconds: number }>({
    facts: column(1184),
    values: fc.record({
      micros: times(),
      zoneSeconds: fc.oneof(
        fc.constant(0),
        fc.integer({ min: -63, max: 63 }).map((quarters) => quarters * 900),
        fc.integer({ min: -57_599, max: 57_599 }),
      ),
    }),
    edges: TIME_EDGES.flatMap((micros) => [0, 3600, 19_800, -12_615].map((zoneSeconds) => ({ micros, zoneSeconds }))),
    text: ({ micros, zoneSeconds }) => {
      const local = micros + BigInt(zoneSeconds) * SECOND;
      return withEra(dayOf(local), ` ${clock(timeOf(local))}${zone(zoneSeconds)}`);
    },
    binary: ({ micros }) => signed(micros - EPOCH, 8),
    expected: ({ micros }) => micros,
  }),
};

/** A column of its own with its builder, ready for an appender. */
export function openColumn(facts: ColumnFacts): { type: SupportedType; builder: ColumnBuilder; column: string } {
  return { type: typeOf(facts) as SupportedType, builder: builderFor(fieldFor(facts)), column: facts.column };
}

/** The only value of the column. 64-bit and decimal values as bigint, bytes as hexadecimal digits. */
export function columnValue({ type, builder }: { type: SupportedType; builder: ColumnBuilder }): unknown {
  const [values, data] = builder.finish().buffers.slice(1) as [Uint8Array, Uint8Array | undefined];
  const bytes = Buffer.from(values);
  switch (type.kind) {
    case 'bool':
      return bytes[0] === 1;
    case 'int32':
    case 'date':
      return BigInt(bytes.readInt32LE());
    case 'uint64':
      return bytes.readBigUInt64LE();
    case 'int64':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return bytes.readBigInt64LE();
    case 'float32':
      return bytes.readFloatLE();
    case 'float64':
      return bytes.readDoubleLE();
    case 'string':
    case 'json':
      return Buffer.from(data!).toString();
    case 'binary':
      return Buffer.from(data!).toString('hex');
    case 'uuid':
      return bytes.toString('hex');
    default:
      return bytes.readBigUInt64LE() + (bytes.readBigInt64LE(8) << 64n);
  }
}

/** What the kind of a column cannot hold, in both forms: the class that the message must name. */
export const REFUSED: [type: string, facts: ColumnFacts, text: string, binary: Buffer, came: string][] = [
  ['numeric(12,2)', column(1700, typmod(12, 2)), 'NaN', numericBinary('NaN'), 'NaN'],
  ['numeric(12,2)', column(1700, typmod(12, 2)), '-Infinity', numericBinary('-Infinity'), '-Infinity'],
  ['numeric(12,2)', column(1700, typmod(12, 2)), '1.234', numericBinary({ unscaled: 1234n, scale: 3 }), 'one of more'],
  ['numeric(3,0)', column(1700, typmod(3, 0)), '1000', numericBinary({ unscaled: 1000n, scale: 0 }), 'one of more'],
  [
    'numeric(20,0)',
    column(1700, typmod(20, 0)),
    '-100000000000000000000',
    numericBinary({ unscaled: -(10n ** 20n), scale: 0 }),
    'one of more',
  ],
  ['date', column(1082), 'infinity', signed(2n ** 31n - 1n, 4), 'infinity'],
  ['date', column(1082), '-infinity', signed(-(2n ** 31n), 4), '-infinity'],
  ['time', column(1083), '24:00:00', signed(86_400_000_000n, 8), '24:00:00'],
  ['timestamp', column(1114), 'infinity', signed(2n ** 63n - 1n, 8), 'infinity'],
  ['timestamp', column(1114), '294276-12-31 23:59:59.999999', signed(9_223_371_331_199_999_999n, 8), 'a later one'],
  ['timestamp', column(1114), '294247-01-10 04:00:54.775808', signed(2n ** 63n - EPOCH, 8), 'a later one'],
  ['timestamptz', column(1184), '-infinity', signed(-(2n ** 63n), 8), '-infinity'],
  [
    'timestamptz',
    column(1184),
    '294276-12-31 23:59:59.999999+00',
    signed(9_223_371_331_199_999_999n, 8),
    'a later one',
  ],
];

function form<Value>(form: Form<Value>): Form<never> {
  return form as unknown as Form<never>;
}

function column(oid: number, typmod = -1): ColumnFacts {
  const facts = { oid, typmod, name: 'any', type: 'b', category: 'X', base: null, formatted: 'any' };
  return { ...facts, column: 'amount', notNull: false, key: false };
}

function typmod(precision: number, scale: number): number {
  return ((precision << 16) | (scale & 0x7ff)) + 4;
}

function integer(oid: number, bytes: number): Form<never> {
  const most = 2n ** BigInt(8 * bytes - 1) - 1n;
  return form<bigint>({
    facts: column(oid),
    values: fc.oneof(fc.bigInt(-most - 1n, most), fc.bigInt(-1000n, 1000n)),
    edges: [0n, -1n, most, -most - 1n, most / 2n],
    text: String,
    binary: (value) => signed(value, bytes),
    expected: (value) => value,
  });
}

function decimal(precision: number, scale: number): Form<never> {
  const most = 10n ** BigInt(precision) - 1n;
  const unscaled = fc.oneof(
    fc.bigInt(-most, most),
    fc.bigInt(-999n, 999n),
    fc.bigInt(-most / 10n ** 3n, most / 10n ** 3n),
  );
  return form<bigint>({
    facts: column(1700, typmod(precision, scale)),
    values: unscaled,
    edges: [0n, 1n, -1n, most, -most, 10n ** BigInt(precision - 1)],
    text: (value) => numericText({ unscaled: value, scale }),
    binary: (value) => numericBinary({ unscaled: value, scale }),
    expected: (value) => value,
  });
}

function string(oid: number, values: fc.Arbitrary<string>): Form<never> {
  return form<string>({
    facts: column(oid),
    values,
    edges: ['', 'é', '\u{1f980}'.repeat(2000)],
    text: (value) => value,
    binary: (value) => Buffer.from(value),
    expected: (value) => value,
  });
}

type Numeric = { unscaled: bigint; scale: number } | 'NaN' | 'Infinity' | '-Infinity';

function numerics(digits: number, scaleMax: number): fc.Arbitrary<Numeric> {
  const most = 10n ** BigInt(digits);
  return fc.record({
    unscaled: fc.oneof(fc.bigInt(-most, most), fc.bigInt(-100_000n, 100_000n)),
    scale: fc.integer({ min: 0, max: scaleMax }),
  });
}

function numericText(value: Numeric): string {
  if (typeof value === 'string') return value;
  const { unscaled, scale } = value;
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const point = digits.length - scale;
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, point)}${scale > 0 ? '.' : ''}${digits.slice(point)}`;
}

/** Groups of four digits to both sides of the point, without zero groups at either end. */
function numericBinary(value: Numeric): Buffer {
  if (typeof value === 'string') {
    return numericBytes([], 0, { NaN: 0xc000, Infinity: 0xd000, '-Infinity': 0xf000 }[value], 0);
  }
  const [integer = '', fraction = ''] = numericText(value).replace('-', '').split('.');
  const digits =
    integer.padStart(Math.ceil(integer.length / 4) * 4, '0') + fraction.padEnd(Math.ceil(fraction.length / 4) * 4, '0');
  const groups = (digits.match(/.{4}/g) ?? []).map(Number);
  let weight = Math.ceil(integer.length / 4) - 1;
  while (groups[0] === 0) {
    groups.shift();
    weight--;
  }
  while (groups.at(-1) === 0) groups.pop();
  return numericBytes(groups, groups.length === 0 ? 0 : weight, value.unscaled < 0n ? 0x4000 : 0, value.scale);
}

function numericBytes(groups: number[], weight: number, sign: number, scale: number): Buffer {
  const bytes = Buffer.alloc(8 + 2 * groups.length);
  bytes.writeUInt16BE(groups.length, 0);
  bytes.writeInt16BE(weight, 2);
  bytes.writeUInt16BE(sign, 4);
  bytes.writeUInt16BE(scale, 6);
  for (const [i, group] of groups.entries()) bytes.writeUInt16BE(group, 8 + 2 * i);
  return bytes;
}

function signed(value: bigint, bytes: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(value);
  return buffer.subarray(8 - bytes);
}

function ieee(value: number, bytes: 4 | 8): Buffer {
  const buffer = Buffer.alloc(bytes);
  if (bytes === 4) buffer.writeFloatBE(value);
  else buffer.writeDoubleBE(value);
  return buffer;
}

/** The fewest digits that read back as the same float. */
function shortestFloat(value: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return text;
  }
  return value.toPrecision(9);
}

/** The server writes at least two digits of an exponent. */
function exponential(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

function times(): fc.Arbitrary<bigint> {
  const least = TIME_EDGES[0]!;
  return fc.oneof(fc.bigInt(least, 2n ** 63n - 1n), fc.bigInt(least, 4_000_000_000_000_000n));
}

function dayOf(micros: bigint): number {
  return Number((micros - timeOf(micros)) / DAY);
}

function timeOf(micros: bigint): bigint {
  return ((micros % DAY) + DAY) % DAY;
}

function clock(micros: bigint): string {
  const seconds = micros / SECOND;
  const fraction = micros % SECOND === 0n ? '' : `.${String(micros % SECOND).padStart(6, '0')}`.replace(/0+$/, '');
  return `${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}${fraction}`;
}

/** The date of a day, then `rest`, then the era. The calendar repeats after 400 years, which brings any day to a Date. */
function withEra(days: number, rest: string): string {
  const cycles = Math.floor(days / 146_097);
  const date = new Date((days - cycles * 146_097) * 86_400_000);
  const year = date.getUTCFullYear() + 400 * cycles;
  const shown = String(year > 0 ? year : 1 - year).padStart(4, '0');
  return `${shown}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}${rest}${year > 0 ? '' : ' BC'}`;
}

function zone(seconds: number): string {
  const away = Math.abs(seconds);
  const parts = [away / 3600, (away / 60) % 60, away % 60].map(Math.floor);
  while (parts.length > 1 && parts.at(-1) === 0) parts.pop();
  return (seconds < 0 ? '-' : '+') + parts.map(two).join(':');
}

function two(value: number | bigint): string {
  return String(value).padStart(2, '0');
}

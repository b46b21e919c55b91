import {
  arrowTypeOf,
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
} from '@urutau/sdk';
import { Field } from 'apache-arrow';
import fc from 'fast-check';

export type Value = boolean | number | bigint | string | Uint8Array | null;

/** How values of one kind are made, appended, and read by apache-arrow (`seen`). */
interface Sample {
  kind: Kind;
  values: fc.Arbitrary<Exclude<Value, null>>;
  append(builder: ColumnBuilder, value: never): void;
}

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

export const SAMPLES: readonly Sample[] = [
  { kind: 'bool', values: fc.boolean(), append: (b, value: boolean) => (b as BoolBuilder).append(value) },
  { kind: 'int32', values: fc.integer(), append: (b, value: number) => (b as Int32Builder).append(value) },
  {
    kind: 'int64',
    values: fc.oneof(int64, fc.maxSafeInteger().map(BigInt)),
    append: (b, value: bigint) => appendInt64(b as Int64Builder, value),
  },
  {
    kind: 'uint64',
    values: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    append: (b, value: bigint) => (b as Int64Builder).appendBigInt(BigInt.asIntN(64, value)),
  },
  { kind: 'float32', values: fc.float(), append: (b, value: number) => (b as Float32Builder).append(value) },
  { kind: 'float64', values: fc.double(), append: (b, value: number) => (b as Float64Builder).append(value) },
  {
    kind: 'decimal(38,4)',
    values: fc.oneof(fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }), fc.maxSafeInteger().map(BigInt)),
    append: (b, value: bigint) => appendDecimal(b as DecimalBuilder, value),
  },
  {
    kind: 'string',
    values: fc.string({ unit: 'grapheme' }),
    append: (b, value: string) => (b as BytesBuilder).appendString(value),
  },
  {
    kind: 'binary',
    values: fc.uint8Array({ maxLength: 80 }),
    append: (b, value: Uint8Array) => (b as BytesBuilder).append(value, 0, value.length),
  },
  {
    kind: 'fixed(5)',
    values: fc.uint8Array({ minLength: 5, maxLength: 5 }),
    append: (b, value: Uint8Array) => (b as FixedBytesBuilder).append(value, 0),
  },
  {
    kind: 'date',
    values: fc.integer({ min: -1_000_000, max: 1_000_000 }),
    append: (b, value: number) => (b as Int32Builder).append(value),
  },
  { kind: 'timestamptz', values: int64, append: (b, value: bigint) => (b as Int64Builder).appendBigInt(value) },
];

/** One column of each kind, with `rows` random values or NULLs each. */
export function randomRows(rowsMax: number): fc.Arbitrary<Value[][]> {
  const row = fc.tuple(...SAMPLES.map(({ values }) => fc.option(values, { nil: null, freq: 3 })));
  return fc.array(row as fc.Arbitrary<Value[]>, { maxLength: rowsMax });
}

export function sampleFields(): Field[] {
  return SAMPLES.map(({ kind }) => new Field(kind, arrowTypeOf(kind), true));
}

/** Appends the values of one row; a NULL is appended or left out, which means the same. */
export function appendRow(builders: readonly ColumnBuilder[], row: readonly Value[], explicitNulls: boolean): void {
  for (const [index, value] of row.entries()) {
    if (value !== null) SAMPLES[index]!.append(builders[index]!, value as never);
    else if (explicitNulls) builders[index]!.appendNull();
  }
}

function appendInt64(builder: Int64Builder, value: bigint): void {
  if (Number.isSafeInteger(Number(value))) builder.appendNumber(Number(value));
  else builder.appendHalves(Number(value & 0xffff_ffffn), Number((value >> 32n) & 0xffff_ffffn));
}

function appendDecimal(builder: DecimalBuilder, value: bigint): void {
  if (Number.isSafeInteger(Number(value))) builder.appendNumber(Number(value));
  else builder.appendBigInt(value);
}

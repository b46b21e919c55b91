import type { Column } from '@urutau/sdk';
import { Decimal, Field } from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fieldOf, tupleMessage } from '../../../../../drivers/postgres/sink/tuple-message.ts';

test('every decimal is written as the number that it is, with its scale', () => {
  const magnitude = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 6n }),
    fc.bigInt({ min: 0n, max: 2n ** 54n }),
    fc.bigInt({ min: 0n, max: 10n ** 38n - 1n }),
  );
  fc.assert(
    fc.property(
      fc.array(fc.record({ magnitude, negative: fc.boolean() }), { minLength: 1 }),
      fc.integer({ min: -5, max: 38 }),
      (values, scale) => {
        const unscaled = values.map(({ magnitude, negative }) => (negative ? -magnitude : magnitude));

        const fields = written(decimalColumn(unscaled, scale, 16));

        expect(fields.map(readNumeric)).toEqual(unscaled.map((value) => normal(value, scale)));
      },
    ),
    { numRuns: 500 },
  );
});

test('a decimal of 76 digits and its negative keep every digit', () => {
  const value = 10n ** 76n - 1n;

  const fields = written(decimalColumn([value, -value, 0n], 10, 32));

  expect(fields.map(readNumeric)).toEqual([normal(value, 10), normal(-value, 10), normal(0n, 10)]);
});

test('whole numbers of 64 bits are written as numerics, the unsigned beyond the signed', () => {
  const signed = [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 10_000n];
  const unsigned = [0n, 2n ** 64n - 1n, 2n ** 63n, 99_999_999n];

  expect(written(int64Column('int64', signed)).map(readNumeric)).toEqual(signed.map((value) => normal(value, 0)));
  expect(written(int64Column('uint64', unsigned)).map(readNumeric)).toEqual(unsigned.map((value) => normal(value, 0)));
});

interface Numeric {
  /** The value times 10^40, so that all scales compare. */
  value: bigint;
  displayScale: number;
}

const COMMON = 40;

function normal(unscaled: bigint, scale: number): Numeric {
  return { value: unscaled * 10n ** BigInt(COMMON - scale), displayScale: Math.max(scale, 0) };
}

/** Reads the server's binary form back by its definition. */
function readNumeric(field: Buffer | null): Numeric {
  const digits = field!.readInt16BE(0);
  const weight = field!.readInt16BE(2);
  expect(field!.length).toBe(8 + 2 * digits);
  let value = 0n;
  for (let index = 0; index < digits; index++) {
    const digit = field!.readUInt16BE(8 + 2 * index);
    expect(digit).toBeLessThan(10_000);
    if (index === 0) expect(digit).toBeGreaterThan(0);
    value += BigInt(digit) * 10n ** BigInt(COMMON + 4 * (weight - index));
  }
  const sign = field!.readUInt16BE(4);
  expect([0, 0x4000]).toContain(sign);
  return { value: sign === 0 ? value : -value, displayScale: field!.readUInt16BE(6) };
}

function written(column: Column): (Buffer | null)[] {
  const rows = Int32Array.from({ length: column.length }, (_, row) => row);
  const selection = { rows, tuples: rows, length: rows.length };
  const message = tupleMessage(rows.length, [{ form: 'numeric', parts: [{ column, selection }], nulls: [] }], null);
  return [...rows].map((tuple) => fieldOf(message, tuple, 0));
}

function decimalColumn(values: readonly bigint[], scale: number, bytesPerValue: 16 | 32): Column {
  const bytes = Buffer.alloc(bytesPerValue * values.length);
  for (const [row, value] of values.entries()) {
    for (let word = 0; word < bytesPerValue / 8; word++) {
      bytes.writeBigUInt64LE(BigInt.asUintN(64, value >> BigInt(64 * word)), row * bytesPerValue + 8 * word);
    }
  }
  const field = new Field('n', new Decimal(scale, 38, bytesPerValue * 8));
  return {
    kind: 'decimal',
    field,
    length: values.length,
    nullCount: 0,
    validity: null,
    precision: 38,
    scale,
    bytesPerValue,
    bytes,
  };
}

function int64Column(kind: 'int64' | 'uint64', numbers: readonly bigint[]): Column {
  const values = BigInt64Array.from(numbers, (value) => BigInt.asIntN(64, value));
  const base = { field: new Field('n', new Decimal(0, 20, 128)), length: values.length, nullCount: 0, validity: null };
  const halves = new Uint32Array(values.buffer);
  return kind === 'int64'
    ? { ...base, kind, values, halves }
    : { ...base, kind, values: new BigUint64Array(values.buffer), halves };
}

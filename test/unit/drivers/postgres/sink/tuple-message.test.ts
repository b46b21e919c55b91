import type { Column } from '@urutau/sdk';
import { Field, Int32, Utf8 } from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fieldOf, tupleMessage } from '../../../../../drivers/postgres/sink/tuple-message.ts';

const CELL = fc.record({
  text: fc.option(fc.string({ maxLength: 200, unit: 'binary' })),
  number: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
});

test('fields of any length, chosen rows and NULLs come out where they belong', () => {
  fc.assert(
    fc.property(fc.array(CELL, { minLength: 1, maxLength: 40 }), fc.infiniteStream(fc.boolean()), (cells, choices) => {
      const rows = [...cells.keys()].filter(() => choices.next().value);
      const selection = { rows: Int32Array.from(rows), tuples: Int32Array.from(rows.keys()), length: rows.length };
      const texts = textColumn(cells.map(({ text }) => text));
      const numbers = int32Column(cells.map(({ number }) => number));

      const message = tupleMessage(
        rows.length,
        [
          { form: 'text', parts: [{ column: texts, selection }], nulls: [] },
          { form: 'int4', parts: [], nulls: [selection] },
          { form: 'int4', parts: [{ column: numbers, selection }], nulls: [] },
        ],
        { ordinal: (tuple) => 2 ** 40 + tuple, deletes: Uint8Array.from(rows, () => 1) },
      );

      expect(message.readUInt32BE(1)).toBe(message.length - 1);
      for (const [tuple, row] of rows.entries()) {
        const field = (index: number) => fieldOf(message, tuple, index);
        expect(field(0)!.readBigInt64BE()).toBe(2n ** 40n + BigInt(tuple));
        expect(field(1)).toEqual(Buffer.of(1));
        expect(field(2)?.toString() ?? null).toBe(cells[row]!.text);
        expect(field(3)).toBeNull();
        expect(field(4)?.readInt32BE() ?? null).toBe(cells[row]!.number);
      }
    }),
  );
});

function textColumn(values: readonly (string | null)[]): Column {
  const parts = values.map((value) => Buffer.from(value ?? ''));
  const offsets = new Int32Array(values.length + 1);
  for (const [index, part] of parts.entries()) offsets[index + 1] = offsets[index]! + part.length;
  return { ...baseOf(values, new Field('t', new Utf8(), true)), kind: 'string', offsets, bytes: Buffer.concat(parts) };
}

function int32Column(values: readonly (number | null)[]): Column {
  return {
    ...baseOf(values, new Field('n', new Int32(), true)),
    kind: 'int32',
    values: Int32Array.from(values, (value) => value ?? 0),
  };
}

function baseOf(values: readonly unknown[], field: Field) {
  const validity = new Uint8Array((values.length + 7) >> 3);
  for (const [row, value] of values.entries()) if (value !== null) validity[row >> 3]! |= 1 << (row & 7);
  const nullCount = values.filter((value) => value === null).length;
  return { field, length: values.length, nullCount, validity: nullCount > 0 ? validity : null };
}

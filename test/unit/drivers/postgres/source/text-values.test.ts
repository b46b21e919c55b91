import { LIMIT } from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readFloat } from '../../../../../drivers/postgres/source/float-text.ts';
import { textAppender } from '../../../../../drivers/postgres/source/text-values.ts';
import type { ColumnFacts } from '../../../../../drivers/postgres/types.ts';
import { columnValue, FORMS, openColumn, REFUSED } from './server-forms.ts';

test.each(Object.entries(FORMS))('any %s is read from its text', (_, form) => {
  fc.assert(
    fc.property(form.values, (value) => {
      expect(appendText(form.facts, form.text(value))).toEqual(form.expected(value));
    }),
  );
});

test.each(Object.entries(FORMS))('the edges of %s are read from their text', (_, form) => {
  expect(form.edges.map((value) => appendText(form.facts, form.text(value)))).toEqual(form.edges.map(form.expected));
});

test.each([
  [1082, '1991-02-10 BC', BigInt(Date.UTC(-1990, 1, 10) / 86_400_000)],
  [1082, '0001-01-01', -719_162n],
  [1082, '10000-01-01', 2_932_897n],
  [1184, '2024-05-06 12:38:09.5+05:30', 1_714_979_289_500_000n],
  [1184, '2024-05-06 03:37:54.5-03:30:15', 1_714_979_289_500_000n],
  [1184, '0044-03-15 12:00:00+00 BC', BigInt(Date.UTC(-43, 2, 15, 12)) * 1000n],
])('type %i reads %s', (oid, text, expected) => {
  expect(appendText({ ...FORMS['text']!.facts, oid }, text)).toBe(expected);
});

test('a decimal with fewer digits after the point, or more that are zero, is brought to the scale', () => {
  const { facts } = FORMS['numeric(12,2)']!;

  expect(appendText(facts, '7')).toBe(700n);
  expect(appendText(facts, '7.5')).toBe(750n);
  expect(appendText(facts, '-7.500000')).toBe(-750n);
});

test('a float is rounded from its text and not from the double nearest to it', () => {
  // 1 + 2^-24 lies in the middle of two floats; a little more than it is the upper one.
  expect(readFloat(Buffer.from('1.000000059604644775390625'), 0, 26)).toBe(1);
  expect(readFloat(Buffer.from('1.00000005960464477539062500001'), 0, 31)).toBe(1 + 2 ** -23);
  expect(readFloat(Buffer.from('-1.00000005960464477539062500001'), 0, 32)).toBe(-1 - 2 ** -23);
  expect(readFloat(Buffer.from('1.00000017881393432617187499999'), 0, 31)).toBe(1 + 2 ** -23);
});

test('any plain decimal text gives the double that JavaScript reads', () => {
  const digits = fc.stringMatching(/^-?\d{1,19}(\.\d{1,24})?$/);
  fc.assert(
    fc.property(digits, (text) => {
      expect(appendText({ ...FORMS['text']!.facts, oid: 701 }, text)).toBe(Number(text));
    }),
    { numRuns: 2000 },
  );
});

test.each(REFUSED)('%s: a value that the kind cannot hold is a refused row that names the column', (...row) => {
  const [, facts, text, , came] = row;

  expect(() => appendText(facts, text)).toThrow(
    expect.objectContaining({
      code: 'row-refused',
      message: expect.stringMatching(new RegExp(`^column amount: expected .*; came ${came}$`)),
      context: { column: 'amount' },
      remedy: expect.stringContaining('Correct the row'),
    }),
  );
});

test.each<[string, string]>([
  ['boolean', 'true'],
  ['integer', ''],
  ['integer', '-'],
  ['integer', '1x'],
  ['integer', '2147483648'],
  ['bigint', '9223372036854775808'],
  ['bigint', '12345678901234567x'],
  ['double precision', ''],
  ['double precision', '-'],
  ['double precision', '.'],
  ['double precision', '1.2.3'],
  ['double precision', '0x10'],
  ['real', 'nan'],
  ['numeric(12,2)', ''],
  ['numeric(12,2)', '1e5'],
  ['numeric(12,2)', '1.2.3'],
  ['date', '2024-13-01'],
  ['date', '06/05/2024'],
  ['date', '2024-05-06 12:00:00'],
  ['time', '12:00'],
  ['time', '12:00:00.1234567'],
  ['timestamp', '2024-05-06'],
  ['timestamp', '2024-05-06 12:00:00+00'],
  ['timestamptz', '2024-05-06 12:00:00'],
  ['uuid', '00000000-0000-0000-0000-00000000000g'],
  ['uuid', '00000000'],
  ['bytea', 'abc'],
  ['bytea', '\\x0'],
  ['bytea', '\\xgg'],
])('%s: the text %j is a protocol violation that names the column', (type, text) => {
  expect(() => appendText(FORMS[type]!.facts, text)).toThrow(
    expect.objectContaining({ code: 'protocol-violation', context: { column: 'amount' } }),
  );
});

test('a text over the message limit is a row too large that names the column', () => {
  const { type, builder, column } = openColumn(FORMS['text']!.facts);
  const append = textAppender(type.kind, builder, column);

  expect(() => append(Buffer.alloc(0), 0, LIMIT.messageBytesMax + 1)).toThrow(
    expect.objectContaining({ code: 'row-too-large', context: { column: 'amount' } }),
  );
});

/** The text lies amid other bytes, once in a Buffer and once in a plain array. */
function appendText(facts: ColumnFacts, text: string): unknown {
  const value = Buffer.from(text);
  const bytes = Buffer.concat([Buffer.from('123'), value, Buffer.from('456')]);
  const [fromBuffer, fromArray] = [bytes, Uint8Array.from(bytes)].map((source) => {
    const { type, builder, column } = openColumn(facts);
    textAppender(type.kind, builder, column)(source, 3, value.length);
    return columnValue({ type, builder });
  });
  expect(fromArray).toEqual(fromBuffer);
  return fromBuffer;
}

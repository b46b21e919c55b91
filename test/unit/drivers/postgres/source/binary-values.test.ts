import fc from 'fast-check';
import { expect, test } from 'vitest';
import { binaryAppender } from '../../../../../drivers/postgres/source/binary-values.ts';
import type { ColumnFacts } from '../../../../../drivers/postgres/types.ts';
import { columnValue, FORMS, openColumn, REFUSED } from './server-forms.ts';

test.each(Object.entries(FORMS))('any %s is read from its binary form', (_, form) => {
  fc.assert(
    fc.property(form.values, (value) => {
      expect(appendBinary(form.facts, form.binary(value))).toEqual(form.expected(value));
    }),
  );
});

test.each(Object.entries(FORMS))('the edges of %s are read from their binary form', (_, form) => {
  expect(form.edges.map((value) => appendBinary(form.facts, form.binary(value)))).toEqual(
    form.edges.map(form.expected),
  );
});

test('every NaN of the server becomes the one that its text gives', () => {
  const { type, builder, column } = openColumn(FORMS['double precision']!.facts);

  binaryAppender(type, builder, column)(Buffer.from('fff8000000000001', 'hex'), 0, 8);

  expect(Buffer.from(builder.finish().buffers[1]!).toString('hex')).toBe('000000000000f87f');
});

test.each(REFUSED)('%s: a value that the kind cannot hold is a refused row that names the column', (...row) => {
  const [, facts, , binary, came] = row;

  expect(() => appendBinary(facts, binary)).toThrow(
    expect.objectContaining({
      code: 'row-refused',
      message: expect.stringMatching(new RegExp(`^column amount: expected .*; came ${came}$`)),
      context: { column: 'amount' },
      remedy: expect.stringContaining('Correct the row'),
    }),
  );
});

test.each([
  ...['boolean', 'smallint', 'integer', 'bigint', 'oid', 'real', 'double precision', 'date', 'time'],
  ...['timestamp', 'timestamptz', 'uuid', 'numeric(12,2)', 'numeric'],
])('%s: a value of another length is a protocol violation that names the column', (type) => {
  const { facts, edges, binary } = FORMS[type]!;
  const value = binary(edges[0]!);

  for (const other of [value.subarray(1), Buffer.concat([value, Buffer.from([0])])]) {
    expect(() => appendBinary(facts, other)).toThrow(
      expect.objectContaining({ code: 'protocol-violation', context: { column: 'amount' } }),
    );
  }
});

test.each([
  ['boolean', '02'],
  ['jsonb', '027b7d'],
  ['jsonb', ''],
  ['numeric(12,2)', '0000000012340000'],
])('%s: the bytes %s are a protocol violation', (type, bytes) => {
  expect(() => appendBinary(FORMS[type]!.facts, Buffer.from(bytes, 'hex'))).toThrow(
    expect.objectContaining({ code: 'protocol-violation' }),
  );
});

/** The value lies amid other bytes. */
function appendBinary(facts: ColumnFacts, value: Buffer): unknown {
  const { type, builder, column } = openColumn(facts);
  binaryAppender(type, builder, column)(
    Buffer.concat([Buffer.from('abc'), value, Buffer.from('def')]),
    3,
    value.length,
  );
  return columnValue({ type, builder });
}

import { arrowTypeOf, type Kind, METADATA } from '@urutau/contract';
import { type DataType, Field, makeVector, Schema, TimestampNanosecond, Utf8, vectorFromArray } from 'apache-arrow';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../../host/verify/canonical-json.ts';
import { canonicalText, withoutTrailingZeros } from '../../../../host/verify/canonical-text.ts';
import { formOf, pairColumns } from '../../../../host/verify/column-pairs.ts';

function field(kind: Kind, sourceType?: string, type: DataType = arrowTypeOf(kind)): Field {
  const metadata = new Map<string, string>(sourceType === undefined ? [] : [[METADATA.sourceType, sourceType]]);
  if (kind === 'uuid' || kind === 'json') metadata.set('ARROW:extension:name', `arrow.${kind}`);
  return new Field('c', type, true, metadata);
}

test.each([
  ['int32', 'int32', 'as-is'],
  ['int32', 'int64', 'number'],
  ['int64', 'decimal(20,0)', 'number'],
  ['uint64', 'decimal(20,0)', 'number'],
  ['decimal(12,2)', 'decimal(12,2)', 'as-is'],
  ['decimal(12,2)', 'decimal(14,4)', 'number'],
  ['decimal(12,2)', 'string', 'number'],
  ['float32', 'float64', 'double'],
  ['string', 'string', 'as-is'],
  ['fixed(3)', 'binary', 'bytes'],
  ['uuid', 'string', 'text'],
  ['json', 'string', 'json'],
  ['date', 'date', 'as-is'],
  ['timestamp', 'timestamptz', 'text'],
] as const)('a column of kind %s is compared with one of %s as %s', (source, destination, form) => {
  expect(formOf(field(source), field(destination))).toBe(form);
});

test('texts of JSON are compared as they are only where one type wrote both', () => {
  expect(formOf(field('json', 'jsonb'), field('json', 'jsonb'))).toBe('as-is');
  expect(formOf(field('json', 'json'), field('json', 'jsonb'))).toBe('json');
  expect(formOf(field('json'), field('json'))).toBe('json');
});

test('timestamps of other units are compared as instants', () => {
  const nanos = field('timestamp', undefined, new TimestampNanosecond());

  expect(formOf(nanos, field('timestamp'))).toBe('instant');
});

test('the key comes first, in its own order, and columns of the destination alone do not matter', () => {
  const columns = (...names: string[]) => new Schema(names.map((name) => new Field(name, new Utf8(), true)));
  const table = { source: 'public.t', target: 'copy.t' };

  const pairs = pairColumns(columns('a', 'b', 'c'), columns('x', 'c', 'b', 'a'), ['c', 'a'], table);

  expect(pairs.map(({ name, key, source, destination }) => [name, key, source, destination])).toEqual([
    ['c', true, 2, 1],
    ['a', true, 0, 3],
    ['b', false, 1, 2],
  ]);
  expect(() => pairColumns(columns('a', 'b', 'c'), columns('a'), ['a'], table)).toThrow('copy.t has no columns b, c');
  expect(() => pairColumns(columns('a'), columns('a'), ['id'], table)).toThrow('public.t has no column id');
});

test.each([
  ['1.50', '1.5'],
  ['1.00', '1'],
  ['-0.00', '0'],
  ['007', '7'],
  ['-0.010', '-0.01'],
  ['100', '100'],
  ['.5', '0.5'],
  ['NaN', 'NaN'],
  ['', ''],
])('the number %s is written %s', (text, canonical) => {
  expect(withoutTrailingZeros(text)).toBe(canonical);
});

test.each([
  ['{"b": 1, "a": [1, 2 ]}', '{"a":[1,2],"b":1}'],
  ['{"a": 1, "a": 2}', '{"a":2}'],
  ['[1.0, 10e-1, 1, 0.10, -0, 1200]', '[1,1.00,100e-2,1E-1,0.0,12e2]'],
  [' "\\u00e9\\/" ', '"é/"'],
  ['[ ]', '[]'],
  ['{ }', '{}'],
  ['[true, false, null, "1.0", {"x": {}}]', '[true,false,null,"1.0",{"x":{}}]'],
])('the JSON %s is the same as %s', (a, b) => {
  expect(canonicalJson(a)).toBe(canonicalJson(b));
});

test('JSON that differs in a digit beyond the precision of a double differs', () => {
  expect(canonicalJson('9007199254740993')).not.toBe(canonicalJson('9007199254740992'));
  expect(canonicalJson('not json')).toBe('not json');
  expect(canonicalJson(String.raw`["a\"]", "\\", ""]`)).toBe(String.raw`["a\"]","\\",""]`);
  const long = JSON.stringify('\n"x'.repeat(4_000_000));
  expect(canonicalJson(` ${long}`) === long).toBe(true);
});

test.each([
  ['date', -2_440_588, '-4713-11-24'],
  ['date', 0, '1970-01-01'],
  ['date', 11_016, '2000-02-29'],
  ['date', -719_529, '-0001-12-31'],
  ['int64', 9_223_372_036_854_775_807n, '9223372036854775807'],
  ['bool', true, 'true'],
] as const)('a %s of %s reads %s', (kind, value, text) => {
  const [data] =
    kind === 'date'
      ? makeVector(Int32Array.of(value as number)).data
      : vectorFromArray([value], arrowTypeOf(kind)).data;
  const typed = kind === 'date' ? data!.clone(arrowTypeOf('date') as never) : data!;

  expect(canonicalText(typed, 'text')(0)).toBe(text);
});

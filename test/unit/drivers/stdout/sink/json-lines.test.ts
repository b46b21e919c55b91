import {
  arrowTypeOf,
  type BoolBuilder,
  type BytesBuilder,
  builderFor,
  ChangeBatch,
  ChangeBatchBuilder,
  type ColumnBuilder,
  changeSchema,
  type DecimalBuilder,
  decodeBatchHeader,
  type Envelope,
  encodeColumns,
  type FixedBytesBuilder,
  type Float32Builder,
  type Float64Builder,
  type Int32Builder,
  type Int64Builder,
  type Kind,
  readColumns,
  type TableShape,
} from '@urutau/sdk';
import { type DataType, Decimal, Field, Struct, TimestampNanosecond } from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventLine, rowLines } from '../../../../../drivers/stdout/sink/json-lines.ts';
import { objectText } from '../../../../../drivers/stdout/sink/json-values.ts';

const ORDERS: TableShape = {
  fields: [column('id', 'int64'), column('name', 'string')],
  primaryKey: ['id'],
  before: 'full',
};

test('each operation has its line: key, images, position, time and phase', () => {
  const builder = new ChangeBatchBuilder(ORDERS);
  order(builder.after, 1n, 'tea');
  builder.close('c', Uint8Array.of(0xfb, 0xff), 1_796_032_800_123_456);
  order(builder.openBefore(), 1n, 'tea');
  order(builder.after, 2n, null);
  builder.close('u', Uint8Array.of(1), null);
  order(builder.openBefore(), 2n, null);
  builder.close('d', Uint8Array.of(2), null);

  expect(linesOf(builder, ORDERS, { phase: 'stream' })).toEqual([
    '{"table":"orders","op":"c","key":{"id":1},"after":{"id":1,"name":"tea"},"position":"+/8=","ts":"2026-11-30T10:00:00.123456Z","phase":"stream"}',
    '{"table":"orders","op":"u","key":{"id":2},"before":{"id":1,"name":"tea"},"after":{"id":2,"name":null},"position":"AQ==","ts":null,"phase":"stream"}',
    '{"table":"orders","op":"d","key":{"id":2},"before":{"id":2,"name":null},"position":"Ag==","ts":null,"phase":"stream"}',
  ]);
});

test('where the before-image holds the key alone, its other columns are not shown', () => {
  const shape: TableShape = { ...ORDERS, before: 'key' };
  const builder = new ChangeBatchBuilder(shape);
  order(builder.openBefore(), 1n, null);
  builder.close('d', Uint8Array.of(1), null);

  expect(linesOf(builder, shape)).toEqual([
    '{"table":"orders","op":"d","key":{"id":1},"before":{"id":1},"position":"AQ==","ts":null,"phase":null}',
  ]);
});

test('a table without a key has lines without one', () => {
  const shape: TableShape = { ...ORDERS, primaryKey: [], before: 'none' };
  const builder = new ChangeBatchBuilder(shape);
  order(builder.after, 1n, 'tea');
  builder.close('c', Uint8Array.of(1), null);

  expect(linesOf(builder, shape)).toEqual([
    '{"table":"orders","op":"c","after":{"id":1,"name":"tea"},"position":"AQ==","ts":null,"phase":null}',
  ]);
});

test('what concerns the whole table is a line too', () => {
  const envelope: Envelope = { seq: 1, rows: 0, offset: 'AQ==', commitTs: '2026-11-30T10:00:00Z', phase: 'stream' };

  expect(eventLine('orders', envelope, { kind: 'truncate' })).toBe(
    '{"table":"orders","op":"truncate","position":"AQ==","ts":"2026-11-30T10:00:00Z","phase":"stream"}\n',
  );
  expect(eventLine('a"b', { seq: 1, rows: 0 }, { kind: 'schema_change', ddl: 'ALTER' })).toBe(
    '{"table":"a\\"b","op":"schema_change","ddl":"ALTER","position":null,"ts":null,"phase":null}\n',
  );
});

const int64 = (value: bigint) => (builder: ColumnBuilder) =>
  (builder as Int64Builder).appendBigInt(BigInt.asIntN(64, value));
const decimal = (value: bigint) => (builder: ColumnBuilder) => (builder as DecimalBuilder).appendBigInt(value);
const float = (value: number) => (builder: ColumnBuilder) => (builder as Float64Builder | Float32Builder).append(value);
const int32 = (value: number) => (builder: ColumnBuilder) => (builder as Int32Builder).append(value);
const bool = (value: boolean) => (builder: ColumnBuilder) => (builder as BoolBuilder).append(value);
const text = (value: string) => (builder: ColumnBuilder) => (builder as BytesBuilder).appendString(value);
const fixed = (hex: string) => (builder: ColumnBuilder) =>
  (builder as FixedBytesBuilder).append(Buffer.from(hex, 'hex'), 0);
const missing = (builder: ColumnBuilder) => builder.appendNull();

const VALUES: [Kind, (builder: ColumnBuilder) => void, string][] = [
  ['bool', bool(true), 'true'],
  ['bool', bool(false), 'false'],
  ['int32', int32(-2147483648), '-2147483648'],
  ['int64', int64(9007199254740991n), '9007199254740991'],
  ['int64', int64(9007199254740992n), '"9007199254740992"'],
  ['int64', int64(-9007199254740991n), '-9007199254740991'],
  ['int64', int64(-9007199254740992n), '"-9007199254740992"'],
  ['int64', int64(-9223372036854775808n), '"-9223372036854775808"'],
  ['int64', int64(1895131128281567232n), '"1895131128281567232"'],
  ['uint64', int64(15506708318740857342n), '"15506708318740857342"'],
  ['uint64', int64(18446744073709551615n), '"18446744073709551615"'],
  ['uint64', int64(7n), '7'],
  ['float64', float(0.1), '0.1'],
  ['float64', float(-0), '-0'],
  ['float64', float(1e300), '1e+300'],
  ['float64', float(Number.NaN), '"NaN"'],
  ['float64', float(Number.POSITIVE_INFINITY), '"Infinity"'],
  ['float64', float(Number.NEGATIVE_INFINITY), '"-Infinity"'],
  ['float32', float(0.1), '0.1'],
  ['float32', float(16777217), '16777216'],
  ['float32', float(Number.NaN), '"NaN"'],
  ['decimal(12,2)', decimal(950n), '"9.50"'],
  ['decimal(12,2)', decimal(-5n), '"-0.05"'],
  ['decimal(12,2)', decimal(0n), '"0.00"'],
  ['decimal(38,0)', decimal(10n ** 38n - 1n), `"${'9'.repeat(38)}"`],
  ['decimal(38,38)', decimal(-(10n ** 38n) + 1n), `"-0.${'9'.repeat(38)}"`],
  ['decimal(38,4)', decimal(-(2n ** 64n)), '"-1844674407370955.1616"'],
  ['string', text('tea'), '"tea"'],
  ['string', text('"\\\n\u0000 größe 🍵'), '"\\"\\\\\\n\\u0000 größe 🍵"'],
  ['string', text(''), '""'],
  ['binary', text('\u0001tea'), '"AXRlYQ=="'],
  ['fixed(3)', fixed('0102ff'), '"AQL/"'],
  ['uuid', fixed('c0ffee00112233445566778899aabbcc'), '"c0ffee00-1122-3344-5566-778899aabbcc"'],
  ['json', text('{"n": 12345678901234567890, "a": [1.10]}'), '{"n": 12345678901234567890, "a": [1.10]}'],
  ['json', text('{\n  "a": "b\\nc"\r\n}'), '{   "a": "b\\nc" }'],
  ['json', text('null'), 'null'],
  ['date', int32(-719_162), '"0001-01-01"'],
  ['time', int64(36_610_500_000n), '"10:10:10.5"'],
  ['timestamp', int64(-1n), '"1969-12-31T23:59:59.999999"'],
  ['timestamptz', int64(253_402_300_800_000_000n), '"+010000-01-01T00:00:00Z"'],
  ['timestamptz', missing, 'null'],
];

test.each(VALUES.map(([kind, append, json]) => ({ kind, append, json })))(
  'a value of $kind is written as $json',
  ({ kind, append, json }) => {
    expect(valuesOf([column('v', kind)], [[append]])).toEqual([`{"v":${json}}`]);
  },
);

test('nanoseconds and negative scales are exact', () => {
  const nanos = [new Field('v', new TimestampNanosecond('UTC') as DataType, true)];
  const thousands = [new Field('v', new Decimal(-3, 10, 128) as DataType, true)];

  expect(valuesOf(nanos, [[int64(1_796_032_800_123_456_789n)]])).toEqual(['{"v":"2026-11-30T10:00:00.123456789Z"}']);
  expect(valuesOf(thousands, [[decimal(12n)], [decimal(0n)]])).toEqual(['{"v":"12000"}', '{"v":"0"}']);
});

test('NULLs between values of each kind stay where they are', () => {
  const fields = [column('a', 'string'), column('b', 'int64')];
  const rows = [
    [missing, int64(1n)],
    [text('x'), missing],
    [missing, missing],
  ];

  expect(valuesOf(fields, rows)).toEqual(['{"a":null,"b":1}', '{"a":"x","b":null}', '{"a":null,"b":null}']);
});

test('a struct is an object', () => {
  const inner = { id: builderFor(column('id', 'int64')), name: builderFor(column('name', 'string')) };
  (inner.id as Int64Builder).appendNumber(1);
  (inner.name as BytesBuilder).appendString('tea');
  const children = [inner.id.finish(), inner.name.finish()];
  const struct = {
    nodes: [{ length: 1, nullCount: 0 }, ...children.flatMap(({ nodes }) => nodes)],
    buffers: [new Uint8Array(0), ...children.flatMap(({ buffers }) => buffers)],
  };
  const { header, body } = encodeColumns([struct], 1);
  const field = new Field('s', new Struct([column('id', 'int64'), column('name', 'string')]) as DataType, true);

  const columns = readColumns([field], decodeBatchHeader(header), Buffer.concat(body));

  expect(objectText(columns)(0)).toBe('{"s":{"id":1,"name":"tea"}}');
});

test('any text is read back by any JSON reader, and a line is one line', () => {
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), fc.constant('\u2028"\\'));
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 20 }), (texts) => {
      const lines = valuesOf(
        [column('größe "', 'string')],
        texts.map((value) => [text(value)]),
      );

      expect(lines.map((line) => JSON.parse(line)['größe "'])).toEqual(texts);
      expect(lines.join('')).not.toMatch(/[\r\n]/);
    }),
  );
});

test('every float is read back as itself', () => {
  fc.assert(
    fc.property(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      (single, double) => {
        const [line] = valuesOf([column('s', 'float32'), column('d', 'float64')], [[float(single), float(double)]]);
        const { s, d } = JSON.parse(line!);

        expect([Math.fround(s), d]).toEqual([single, double]);
      },
    ),
    { numRuns: 500 },
  );
});

test('text in a json column that is no JSON is refused, with table, column, row and key', () => {
  const shape: TableShape = {
    fields: [column('id', 'int64'), column('doc', 'json')],
    primaryKey: ['id'],
    before: 'none',
  };
  const builder = new ChangeBatchBuilder(shape);
  for (const [row, doc] of ['{}', '{"secret'].entries()) {
    (builder.after[0] as Int64Builder).appendNumber(row);
    (builder.after[1] as BytesBuilder).appendString(doc);
    builder.close('c', Uint8Array.of(row), null);
  }

  const print = () => linesOf(builder, shape);

  expect(print).toThrow(
    expect.objectContaining({
      code: 'row-refused',
      message: 'orders: column doc: expected JSON text; came text that is no JSON',
      context: { table: 'orders', column: 'doc', seq: 1, row: 1, key: '{"id":1}' },
    }),
  );
});

test('a large batch comes in texts of bounded length that together hold each row once', () => {
  const builder = new ChangeBatchBuilder(ORDERS);
  const rows = 5_000;
  for (let row = 0; row < rows; row++) {
    order(builder.after, BigInt(row), 'x'.repeat(1_000));
    builder.close('c', Uint8Array.of(1), null);
  }
  const { header, body } = builder.finish();
  const batch = new ChangeBatch(changeSchema(ORDERS), ORDERS, { seq: 1, rows }, header, Buffer.concat(body));

  const texts = [...rowLines('orders', batch)];

  expect(Math.max(...texts.map(({ length }) => length))).toBeLessThan(600_000);
  expect(
    texts
      .join('')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).key.id),
  ).toEqual([...Array(rows).keys()]);
});

function column(name: string, kind: Kind): Field {
  const extension = kind === 'uuid' || kind === 'json' ? [['ARROW:extension:name', `arrow.${kind}`] as const] : [];
  return new Field(name, arrowTypeOf(kind), true, new Map(extension));
}

function order([id, name]: readonly ColumnBuilder[], idValue: bigint, nameValue: string | null): void {
  (id as Int64Builder).appendBigInt(idValue);
  if (nameValue === null) name!.appendNull();
  else (name as BytesBuilder).appendString(nameValue);
}

function linesOf(builder: ChangeBatchBuilder, shape: TableShape, envelope: Partial<Envelope> = {}): string[] {
  const { header, body, rows } = builder.finish();
  const batch = new ChangeBatch(changeSchema(shape), shape, { seq: 1, rows, ...envelope }, header, Buffer.concat(body));
  return [...rowLines('orders', batch)].join('').trimEnd().split('\n');
}

function valuesOf(fields: Field[], rows: ((builder: ColumnBuilder) => void)[][]): string[] {
  const builders = fields.map(builderFor);
  for (const row of rows) for (const [index, append] of row.entries()) append(builders[index]!);
  const { header, body } = encodeColumns(
    builders.map((builder) => builder.finish()),
    rows.length,
  );
  const text = objectText(readColumns(fields, decodeBatchHeader(header), Buffer.concat(body)));
  return rows.map((_, row) => text(row));
}

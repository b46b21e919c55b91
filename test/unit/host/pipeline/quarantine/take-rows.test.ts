import { asIpcStream, encodeSchemaHeader, fromIpcStream } from '@urutau/contract';
import {
  Binary,
  Bool,
  DateDay,
  Decimal,
  Field,
  FixedSizeBinary,
  Float32,
  Float64,
  Int8,
  Int32,
  Int64,
  List,
  type RecordBatch,
  Schema,
  Struct,
  Table,
  TimeMicrosecond,
  TimestampMicrosecond,
  tableFromIPC,
  tableToIPC,
  Uint16,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { columnsOf } from '../../../../../host/pipeline/quarantine/batch-columns.ts';
import { NULL_ROW, takeEach, takeRows } from '../../../../../host/pipeline/quarantine/take-rows.ts';

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const words = (count: number) => fc.uint32Array({ minLength: count, maxLength: count });
const inner = new Struct([
  new Field('flag', new Bool(), true),
  new Field('texts', new List(new Field('item', new Utf8(), true)), true),
  new Field('exact', new Decimal(4, 38, 128), true),
]);
const text = fc.string({ unit: 'grapheme', maxLength: 6 });
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null, freq: 3 });
const innerValue = fc.record({
  flag: maybe(fc.boolean()),
  texts: maybe(fc.array(maybe(text), { maxLength: 3 })),
  exact: maybe(words(4)),
});

/** Columns of every layout that is allowed on the wire, nested ones too. */
const COLUMNS: { field: Field; values: fc.Arbitrary<unknown> }[] = [
  { field: new Field('bool', new Bool(), true), values: fc.boolean() },
  { field: new Field('int8', new Int8(), true), values: fc.integer({ min: -128, max: 127 }) },
  { field: new Field('uint16', new Uint16(), true), values: fc.integer({ min: 0, max: 65_535 }) },
  { field: new Field('int32', new Int32(), true), values: fc.integer() },
  { field: new Field('int64', new Int64(), true), values: int64 },
  { field: new Field('float32', new Float32(), true), values: fc.float({ noNaN: true }) },
  { field: new Field('float64', new Float64(), true), values: fc.double({ noNaN: true }) },
  { field: new Field('decimal128', new Decimal(4, 38, 128), true), values: words(4) },
  { field: new Field('text', new Utf8(), true), values: text },
  { field: new Field('bytes', new Binary(), true), values: fc.uint8Array({ maxLength: 9 }) },
  { field: new Field('fixed', new FixedSizeBinary(5), true), values: fc.uint8Array({ minLength: 5, maxLength: 5 }) },
  {
    field: new Field('date', new DateDay(), true),
    values: fc.integer({ min: 0, max: 20_000 }).map((day) => new Date(day * 86_400_000)),
  },
  { field: new Field('time', new TimeMicrosecond(), true), values: fc.bigInt({ min: 0n, max: 86_399_999_999n }) },
  { field: new Field('stamp', new TimestampMicrosecond('UTC'), true), values: fc.integer({ min: -1e9, max: 1e9 }) },
  {
    field: new Field('list', new List(new Field('item', new Int64(), true)), true),
    values: fc.array(maybe(int64), { maxLength: 4 }),
  },
  { field: new Field('struct', inner, true), values: innerValue },
  {
    field: new Field('structs', new List(new Field('item', inner, true)), true),
    values: fc.array(maybe(innerValue), { maxLength: 3 }),
  },
];

const schema = new Schema(COLUMNS.map(({ field }) => field));
const rowsAndPicks = fc.integer({ min: 1, max: 40 }).chain((rows) =>
  fc.record({
    values: fc.tuple(...COLUMNS.map(({ values }) => fc.array(maybe(values), { minLength: rows, maxLength: rows }))),
    picks: fc.array(fc.integer({ min: 0, max: rows - 1 }), { maxLength: 30 }),
  }),
);

test('rows that are taken are those that were there, value for value, whatever the types and the NULLs', () => {
  fc.assert(
    fc.property(rowsAndPicks, ({ values, picks }) => {
      const { header, body, batch } = encoded(values);

      const taken = takeRows(columnsOf(schema, header, body).columns, picks);

      expect(readBack(taken)).toEqual(picks.map((row) => textOf(batch, row)));
    }),
    { numRuns: 60 },
  );
}, 60_000);

test('a batch of which all rows are taken in order reads as the batch itself, at any alignment of the body', () => {
  fc.assert(
    fc.property(rowsAndPicks, fc.integer({ min: 1, max: 7 }), ({ values }, shift) => {
      const { header, body, batch } = encoded(values);
      const shifted = new Uint8Array(body.length + shift).subarray(shift);
      shifted.set(body);
      const all = Array.from({ length: batch.numRows }, (_, row) => row);

      const taken = takeRows(columnsOf(schema, header, shifted).columns, all);

      expect(readBack(taken)).toEqual(all.map((row) => textOf(batch, row)));
    }),
    { numRuns: 30 },
  );
}, 60_000);

test('a row that is taken as NULL is NULL, with all that lies below it', () => {
  fc.assert(
    fc.property(rowsAndPicks, ({ values, picks }) => {
      const { header, body, batch } = encoded(values);
      const { columns } = columnsOf(schema, header, body);

      const taken = takeEach(
        columns.map((column) => ({
          column,
          picks: column.field.name === 'structs' ? picks.map(() => NULL_ROW) : picks,
        })),
      );

      expect(readBack(taken)).toEqual(picks.map((row) => textOf(batch, row, 'structs')));
    }),
    { numRuns: 30 },
  );
}, 60_000);

function encoded(values: unknown[][]): { header: Uint8Array; body: Uint8Array; batch: RecordBatch } {
  const vectors = COLUMNS.map(({ field: { name, type } }, index) => [name, vectorFromArray(values[index]!, type)]);
  const table = new Table(schema, Object.fromEntries(vectors));
  const { header, body } = fromIpcStream(tableToIPC(table, 'stream'));
  return { header, body, batch: table.batches[0]! };
}

function readBack({ header, body }: { header: Uint8Array; body: Uint8Array }): string[] {
  const { batches } = tableFromIPC(asIpcStream(encodeSchemaHeader(schema), header, body));
  return batches.flatMap((batch) => Array.from({ length: batch.numRows }, (_, row) => textOf(batch, row)));
}

function textOf(batch: RecordBatch, row: number, nullColumn?: string): string {
  const { fields } = batch.schema;
  return JSON.stringify(fields.map(({ name }) => (name === nullColumn ? null : plain(batch.getChild(name)!.get(row)))));
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  const items = value as Iterable<unknown>;
  return [...items].map((item) => (Array.isArray(item) ? [item[0], plain(item[1])] : plain(item)));
}

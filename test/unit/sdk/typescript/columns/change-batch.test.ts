import {
  asIpcStream,
  type BytesBuilder,
  bytesAt,
  ChangeBatch,
  ChangeBatchBuilder,
  type Column,
  changeSchema,
  type EncodedBatch,
  encodeSchemaHeader,
  type Int64Builder,
  isNull,
  type Op,
  type TableShape,
} from '@urutau/sdk';
import { type Data, type DataType, type Struct, Type, tableFromIPC } from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { appendRow, randomRows, sampleFields, type Value } from './random-columns.ts';

const SHAPE: TableShape = { fields: sampleFields(), primaryKey: ['int64'], before: 'full' };

interface Change {
  op: Op;
  before: Value[] | null;
  after: Value[] | null;
}

const changes: fc.Arbitrary<Change[]> = fc.array(
  fc.oneof(
    one(randomRow()).map(([after]): Change => ({ op: 'c', before: null, after: after! })),
    two(randomRow()).map(([before, after]): Change => ({ op: 'u', before: before!, after: after! })),
    one(randomRow()).map(([before]): Change => ({ op: 'd', before: before!, after: null })),
  ),
  { maxLength: 70 },
);

test('what the builder writes, apache-arrow reads, whatever the values, the NULLs and the images', () => {
  fc.assert(
    fc.property(changes, fc.boolean(), (records, explicitNulls) => {
      const batch = encode(new ChangeBatchBuilder(SHAPE), records, explicitNulls);

      expect(readByArrow(batch)).toEqual(records.map(withoutEmptyImages(explicitNulls)));
    }),
    { numRuns: 150 },
  );
});

test('what the builder writes, the reader reads, at any alignment of the body', () => {
  fc.assert(
    fc.property(changes, fc.integer({ min: 0, max: 8 }), (records, shift) => {
      const batch = encode(new ChangeBatchBuilder(SHAPE), records, true);
      const shifted = new Uint8Array(batch.bodyLength + shift).subarray(shift);
      shifted.set(Buffer.concat(batch.body));

      expect(readByReader(batch, shifted)).toEqual(records);
    }),
    { numRuns: 150 },
  );
});

test('a builder that is used again keeps nothing of the batch before, and changes nothing in it', () => {
  fc.assert(
    fc.property(changes, changes, (first, second) => {
      const builder = new ChangeBatchBuilder(SHAPE);

      const batches = [encode(builder, first, true), encode(builder, second, true)];

      expect(batches.map(readByArrow)).toEqual([first, second]);
    }),
    { numRuns: 50 },
  );
});

test('the body’s pieces and its buffers are padded to eight bytes, and its length is that of the pieces', () => {
  fc.assert(
    fc.property(changes, (records) => {
      const { body, bodyLength } = encode(new ChangeBatchBuilder(SHAPE), records, true);

      expect(Buffer.concat(body).length).toBe(bodyLength);
      expect(bodyLength % 8).toBe(0);
    }),
    { numRuns: 50 },
  );
});

test('times of commits keep their microseconds, before 1970 too', () => {
  fc.assert(
    fc.property(fc.option(fc.integer({ min: -(2 ** 52), max: 2 ** 52 })), (micros) => {
      const builder = new ChangeBatchBuilder(SHAPE);
      builder.close('d', Uint8Array.of(1), micros);
      const { header, body } = builder.finish();
      const batch = new ChangeBatch(changeSchema(SHAPE), SHAPE, { seq: 1, rows: 1 }, header, Buffer.concat(body));

      expect(batch.tsSourceNanos(0)).toBe(micros === null ? null : BigInt(micros) * 1000n);
    }),
  );
});

const KEYED: TableShape = { ...SHAPE, fields: [SHAPE.fields[2]!], before: 'key' };

test.each<[string, Op[]]>([
  ['no before-image at all', ['c', 'c']],
  ['a before-image that appears late', ['c', 'c', 'c', 'd']],
  ['deletes between inserts', ['c', 'd', 'c', 'd', 'd', 'c']],
  ['deletes alone', ['d', 'd']],
  ['a delete first', ['d', 'c', 'c']],
  ['one change', ['c']],
  ['nothing', []],
  ['a whole byte of rows, then one that differs', ['c', 'c', 'c', 'c', 'c', 'c', 'c', 'c', 'd']],
])('the images are where they belong with %s', (_, ops) => {
  const builder = new ChangeBatchBuilder(KEYED);
  for (const [row, op] of ops.entries()) {
    const columns = op === 'd' ? builder.openBefore() : builder.after;
    (columns[0] as Int64Builder).appendNumber(row);
    builder.close(op, Uint8Array.of(row), null);
  }
  const { header, body, rows, ops: counts } = builder.finish();
  const batch = new ChangeBatch(changeSchema(KEYED), KEYED, { seq: 1, rows }, header, Buffer.concat(body));

  const read = ops.map((_, row) => [
    batch.op(row),
    batch.hasBefore(row) ? Number((batch.before![0] as { values: BigInt64Array }).values[row]) : null,
    batch.hasAfter(row) ? Number((batch.after[0] as { values: BigInt64Array }).values[row]) : null,
    batch.offset(row)[0],
  ]);

  expect(read).toEqual(ops.map((op, row) => [op, op === 'd' ? row : null, op === 'd' ? null : row, row]));
  expect(counts).toEqual({ c: 0, u: 0, d: 0, ...countsOf(ops) });
});

test('rows whose first values come after NULLs keep both', () => {
  const builder = new ChangeBatchBuilder({ ...SHAPE, before: 'none', fields: SHAPE.fields.slice(7, 8) });
  const [text] = builder.after as [BytesBuilder];
  for (const value of [null, null, 'first', null, 'second']) {
    if (value === null) text.appendNull();
    else text.appendString(value);
    builder.close('c', Uint8Array.of(0), null);
  }
  const shape = { ...SHAPE, before: 'none' as const, fields: SHAPE.fields.slice(7, 8) };
  const { header, body } = builder.finish();
  const batch = new ChangeBatch(changeSchema(shape), shape, { seq: 1, rows: 5 }, header, Buffer.concat(body));

  expect([0, 1, 2, 3, 4].map((row) => valueAt(batch.after[0]!, row))).toEqual([null, null, 'first', null, 'second']);
});

test('a batch looks at nothing before a column is asked for, and refuses an envelope that counts otherwise', () => {
  const { header, body } = encode(new ChangeBatchBuilder(SHAPE), [], true);
  const schema = changeSchema(SHAPE);

  expect(new ChangeBatch(schema, SHAPE, { seq: 1, rows: 7 }, Uint8Array.of(), Uint8Array.of()).rows).toBe(7);
  expect(() => new ChangeBatch(schema, SHAPE, { seq: 1, rows: 7 }, header, Buffer.concat(body)).after).toThrow(
    'the envelope says 7 rows, the batch has 0',
  );
});

test('a body that is cut short is refused with the column’s name', () => {
  const { header, body } = encode(new ChangeBatchBuilder(SHAPE), [{ op: 'd', before: null, after: null }], true);
  const cut = Buffer.concat(body).subarray(0, 16);

  expect(() => new ChangeBatch(changeSchema(SHAPE), SHAPE, { seq: 1, rows: 1 }, header, cut).op(0)).toThrow(
    /column \S+: a buffer ends/,
  );
});

function randomRow(): fc.Arbitrary<Value[]> {
  return randomRows(1)
    .filter((rows) => rows.length === 1)
    .map((rows) => rows[0]!);
}

function one<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(value, { minLength: 1, maxLength: 1 });
}

function two<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(value, { minLength: 2, maxLength: 2 });
}

function encode(builder: ChangeBatchBuilder, records: readonly Change[], explicitNulls: boolean): EncodedBatch {
  for (const { op, before, after } of records) {
    if (before) appendRow(builder.openBefore(), before, explicitNulls);
    if (after) appendRow(builder.after, after, explicitNulls);
    builder.close(op, Uint8Array.of(7), null);
  }
  return builder.finish();
}

/** An image without one value cannot be told from no image, unless its NULLs are appended. */
function withoutEmptyImages(explicitNulls: boolean): (change: Change) => Change {
  const kept = (image: Value[] | null) => (explicitNulls || image?.some((value) => value !== null) ? image : null);
  return ({ op, before, after }) => ({ op, before: kept(before), after: kept(after) });
}

function readByArrow({ header, body, rows }: EncodedBatch): Change[] {
  const stream = asIpcStream(encodeSchemaHeader(changeSchema(SHAPE)), header, Buffer.concat(body));
  const [data] = tableFromIPC(stream).batches.map((batch) => batch.data);
  const [op, before, after] = (data?.children ?? []) as [Data, Data<Struct>, Data<Struct>];
  return Array.from({ length: rows }, (_, row) => ({
    op: arrowValue(op, row) as Op,
    before: arrowImage(before, row),
    after: arrowImage(after, row),
  }));
}

function arrowImage(struct: Data<Struct>, row: number): Value[] | null {
  return struct.getValid(row) ? struct.children.map((child) => arrowValue(child, row)) : null;
}

/** From apache-arrow's buffers, since its getters round timestamps to milliseconds. */
function arrowValue(data: Data<DataType>, row: number): Value {
  if (!data.getValid(row)) return null;
  const { values, valueOffsets, stride } = data;
  switch (data.type.typeId) {
    case Type.Bool:
      return (values[row >> 3] & (1 << (row & 7))) !== 0;
    case Type.Utf8:
      return Buffer.from(values.subarray(valueOffsets[row], valueOffsets[row + 1])).toString();
    case Type.Binary:
      return Uint8Array.from(values.subarray(valueOffsets[row], valueOffsets[row + 1]));
    case Type.FixedSizeBinary:
      return Uint8Array.from(values.subarray(row * stride, (row + 1) * stride));
    case Type.Decimal:
      return unscaled(Buffer.from(values.buffer, values.byteOffset + 16 * row, 16));
    default:
      return values[row];
  }
}

function readByReader({ header, rows }: EncodedBatch, body: Uint8Array): Change[] {
  const batch = new ChangeBatch(changeSchema(SHAPE), SHAPE, { seq: 1, rows }, header, body);
  return Array.from({ length: rows }, (_, row) => ({
    op: batch.op(row),
    before: batch.hasBefore(row) ? batch.before!.map((column) => valueAt(column, row)) : null,
    after: batch.hasAfter(row) ? batch.after.map((column) => valueAt(column, row)) : null,
  }));
}

function valueAt(column: Column, row: number): Value {
  if (isNull(column, row)) return null;
  switch (column.kind) {
    case 'bool':
      return (column.bits[row >> 3]! & (1 << (row & 7))) !== 0;
    case 'string':
      return Buffer.from(bytesAt(column, row)).toString();
    case 'binary':
      return Uint8Array.from(bytesAt(column, row));
    case 'fixed':
      return Uint8Array.from(column.bytes.subarray(row * column.width, (row + 1) * column.width));
    case 'decimal':
      return unscaled(column.bytes.subarray(16 * row, 16 * row + 16));
    case 'struct':
    case 'json':
    case 'uuid':
      throw new Error(`no sample is of kind ${column.kind}`);
    default:
      return column.values[row]!;
  }
}

function unscaled(littleEndian: Uint8Array): bigint {
  return BigInt.asIntN(128, BigInt(`0x${Buffer.from(littleEndian).reverse().toString('hex')}`));
}

function countsOf(ops: readonly Op[]): Partial<Record<Op, number>> {
  return Object.fromEntries(ops.map((op) => [op, ops.filter((other) => other === op).length]));
}

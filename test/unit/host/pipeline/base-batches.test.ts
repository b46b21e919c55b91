import {
  asIpcStream,
  changeSchema,
  decodeBatchHeader,
  encodeSchemaHeader,
  rowSchema,
  type TableShape,
} from '@urutau/contract';
import { type BytesBuilder, builderFor, ChangeBatchBuilder, encodeColumns, type Int64Builder } from '@urutau/sdk';
import { Bool, Field, Int64, tableFromIPC, Utf8 } from 'apache-arrow';
import { expect, test } from 'vitest';
import { describeChanges, wrapRows } from '../../../../host/pipeline/source/base-batches.ts';

const shape: TableShape = {
  fields: [new Field('id', new Int64(), false), new Field('name', new Utf8(), true), new Field('ok', new Bool(), true)],
  primaryKey: ['id'],
  before: 'full',
};

test('counts and the last offset are read from change records that carry no envelope', () => {
  const builder = new ChangeBatchBuilder(shape);
  const [id, name] = builder.after as [Int64Builder, BytesBuilder];
  for (const [op, key] of [
    ['c', 1],
    ['u', 2],
    ['c', 3],
  ] as const) {
    id.appendNumber(key);
    name.appendString('x');
    builder.close(op, Uint8Array.of(9, key), null);
  }
  const { header, body } = builder.finish();

  const described = describeChanges(changeSchema(shape), header, Buffer.concat(body));

  expect(described).toEqual({
    rows: 3,
    ops: { c: 2, u: 1, d: 0 },
    offset: Buffer.from([9, 3]).toString('base64'),
  });
});

test.each(['none', 'full'] as const)(
  'rows of a snapshot become records of op c, with a before-image of kind %s',
  (before) => {
    const columns = shape.fields.map(builderFor);
    const [id, name] = columns as [Int64Builder, BytesBuilder];
    for (let row = 0; row < 5; row++) {
      id.appendNumber(row);
      if (row % 2) name.appendNull();
      else name.appendString(`n${row}`);
    }
    columns[2]!.padTo(5);
    const { header, body } = encodeColumns(
      columns.map((column) => column.finish()),
      5,
    );
    const schema = changeSchema({ ...shape, before });

    const wrapped = wrapRows(schema, header, Buffer.concat(body), Uint8Array.of(1, 2));

    const whole = Buffer.concat(wrapped.body);
    expect(decodeBatchHeader(wrapped.header).bodyLength).toBe(whole.length);
    const rows = tableFromIPC(asIpcStream(encodeSchemaHeader(schema), wrapped.header, whole)).toArray();
    expect(
      rows.map((row) => [
        row.op,
        row.before ?? null,
        row.after.id,
        row.after.name,
        row.after.ok,
        [...row.offset],
        row.ts_source,
      ]),
    ).toEqual([0n, 1n, 2n, 3n, 4n].map((key) => ['c', null, key, key % 2n ? null : `n${key}`, null, [1, 2], null]));
    expect(rowSchema(shape).fields.length).toBe(3);
  },
);

test('a batch that has other columns than its stream is refused before anything is read from it', () => {
  const wider: TableShape = { ...shape, fields: [...shape.fields, new Field('added', new Utf8(), true)] };
  const builder = new ChangeBatchBuilder(shape);
  builder.close('d', Uint8Array.of(1), null);
  const changes = builder.finish();
  const id = builderFor(new Field('id', new Int64(), false)) as Int64Builder;
  id.appendNumber(1);
  const one = encodeColumns([id.finish()], 1);

  expect(() => describeChanges(changeSchema(wider), changes.header, Buffer.concat(changes.body))).toThrow('(CHG-2)');
  expect(() => wrapRows(changeSchema(shape), one.header, Buffer.concat(one.body), Uint8Array.of(1))).toThrow('(CHG-2)');
});

import {
  BytesBuilder,
  ChangeBatch,
  type ColumnBuilder,
  changeSchema,
  encodeColumns,
  Int32Builder,
  Int64Builder,
} from '@urutau/sdk';
import {
  type DataType,
  Field,
  Int16,
  LargeUtf8,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  Uint32,
} from 'apache-arrow';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { ensureRequest, openSink, openTable, type Row, shapeOf, TableHost } from './sink-harness.ts';

const KINDS = shapeOf(
  {
    id: 'int32',
    b: 'bool',
    i: 'int64',
    u: 'uint64',
    r: 'float32',
    f: 'float64',
    n: 'decimal(38,9)',
    w: 'decimal(38,0)',
    s: 'string',
    y: 'binary',
    x: 'fixed(3)',
    d: 'date',
    t: 'time',
    ts: 'timestamp',
    tz: 'timestamptz',
    g: 'uuid',
    j: 'json',
  },
  ['id'],
);

const UUID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const NINES_38 = 10n ** 38n - 1n;

/** Each row beside the text that the server must show for it. */
const EDGES: { row: Row; shown: Record<string, string | null> }[] = [
  {
    row: {
      id: -2147483648,
      b: true,
      i: 2n ** 63n - 1n,
      u: 2n ** 64n - 1n,
      r: 1.5,
      f: 5e-324,
      n: NINES_38,
      w: -NINES_38,
      s: 'ñ €🦜',
      y: Buffer.from('00ff', 'hex'),
      x: Buffer.from('010203', 'hex'),
      d: -2_440_588,
      t: 86_400_000_000n,
      ts: 2n ** 63n - 1n,
      tz: -210_866_803_200_000_000n,
      g: UUID,
      j: '{"a": [1, null]}',
    },
    shown: {
      id: '-2147483648',
      b: 'true',
      i: '9223372036854775807',
      u: '18446744073709551615',
      r: '1.5',
      f: '5e-324',
      n: '99999999999999999999999999999.999999999',
      w: '-99999999999999999999999999999999999999',
      s: 'ñ €🦜',
      y: '\\x00ff',
      x: '\\x010203',
      d: '4714-11-24 BC',
      t: '24:00:00',
      ts: '294247-01-10 04:00:54.775807',
      tz: '4714-11-24 00:00:00+00 BC',
      g: '00112233-4455-6677-8899-aabbccddeeff',
      j: '{"a": [1, null]}',
    },
  },
  {
    row: {
      id: 1,
      b: false,
      i: -(2n ** 63n),
      u: 0n,
      r: Number.NaN,
      f: Number.NEGATIVE_INFINITY,
      n: 1n,
      w: 10_000n,
      s: '',
      y: Buffer.alloc(0),
      x: Buffer.alloc(3),
      d: 0,
      t: 0n,
      ts: -1n,
      tz: 1n,
      g: Buffer.alloc(16),
      j: '"x"',
    },
    shown: {
      id: '1',
      b: 'false',
      i: '-9223372036854775808',
      u: '0',
      r: 'NaN',
      f: '-Infinity',
      n: '0.000000001',
      w: '10000',
      s: '',
      y: '\\x',
      x: '\\x000000',
      d: '1970-01-01',
      t: '00:00:00',
      ts: '1969-12-31 23:59:59.999999',
      tz: '1970-01-01 00:00:00.000001+00',
      g: '00000000-0000-0000-0000-000000000000',
      j: '"x"',
    },
  },
  {
    row: {
      id: 2,
      n: -123_456_789_012n,
      w: 0n,
      i: -1n,
      u: 2n ** 63n,
      d: 10_957,
      ts: 946_684_800_000_000n,
      t: 1n,
      f: -0,
      s: 'y'.repeat(300),
    },
    shown: {
      id: '2',
      b: null,
      i: '-1',
      u: '9223372036854775808',
      r: null,
      f: '-0',
      n: '-123.456789012',
      w: '0',
      s: 'y'.repeat(300),
      y: null,
      x: null,
      d: '2000-01-01',
      t: '00:00:00.000001',
      ts: '2000-01-01 00:00:00',
      tz: null,
      g: null,
      j: null,
    },
  },
];

test.each(['postgres18', 'postgres15'] as const)('every kind keeps its edge values in %s', async (server) => {
  const { uri, client } = await freshDatabase(inject(server), 'sink');
  const host = await openTable(openSink(uri), 'edges', KINDS);

  await host.write(EDGES.map(({ row }) => ({ op: 'c', after: row })));
  await host.commit();

  const columns = KINDS.fields.map(({ name }) => `"${name}"::text`).join(', ');
  await client.query("set timezone = 'UTC'");
  const { rows } = await client.query(`select ${columns} from edges`);
  const shown = new Map(rows.map((row) => [row.id, row]));
  for (const { shown: expected } of EDGES) expect(shown.get(expected['id'])).toEqual(expected);
});

test('a mirror of Postgres keeps the types of the source where the target has them', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  await client.query("create type mood as enum ('fine', 'low')");
  const shape = shapeOf(
    {
      id: 'int32 smallint',
      v: 'string character varying(20)',
      c: 'string character(4)',
      n: 'string numeric',
      wide: 'string numeric(60,20)',
      p: 'decimal(5,2) numeric(5,2)',
      j: 'json json',
      e: 'string mood',
      gone: 'string elsewhere',
      m: 'string money',
      o: 'uint64 oid',
      t: 'timestamp timestamp(3) without time zone',
      trick: 'string text; drop table x',
      comment: 'string text -- ',
    },
    ['id'],
  );
  const host = await openTable(openSink(uri), 'mirror', shape, { options: { source: 'postgres' } });

  await host.write([
    {
      op: 'c',
      after: {
        id: -32768,
        v: 'x',
        c: 'ab',
        n: '1.500',
        wide: '1e-20',
        p: 12345n,
        j: '{"a" : 1}',
        e: 'low',
        gone: 'g',
        m: '$1.25',
        o: 4294967295n,
        t: 1_000n,
      },
    },
  ]);
  await host.commit();

  const types = await client.query(
    `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = 'mirror'::regclass and attnum > 0`,
  );
  expect(Object.fromEntries(types.rows.map(({ name, type }) => [name, type]))).toEqual({
    id: 'smallint',
    v: 'character varying(20)',
    c: 'character(4)',
    n: 'numeric',
    wide: 'numeric(60,20)',
    p: 'numeric(5,2)',
    j: 'json',
    e: 'mood',
    gone: 'text',
    m: 'money',
    o: 'oid',
    t: 'timestamp(3) without time zone',
    trick: 'text',
    comment: 'text',
  });
  const { rows } = await client.query(
    'select id::text, v, c, n::text, wide::text, p::text, j::text, e::text, gone, m::text, o::text, t::text from mirror',
  );
  expect(rows).toEqual([
    {
      id: '-32768',
      v: 'x',
      c: 'ab  ',
      n: '1.500',
      wide: '0.00000000000000000001',
      p: '123.45',
      j: '{"a" : 1}',
      e: 'low',
      gone: 'g',
      m: '$1.25',
      o: '4294967295',
      t: '1970-01-01 00:00:00.001',
    },
  ]);
});

test('a key that travels as text of a numeric is matched by its value', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const shape = shapeOf({ id: 'string numeric', v: 'string' }, ['id']);
  const host = await openTable(openSink(uri), 'keys', shape, { options: { source: 'postgres' } });

  await host.write([
    { op: 'c', after: { id: '1.0', v: 'a' } },
    { op: 'u', after: { id: '1.00', v: 'b' } },
    { op: 'c', after: { id: '2', v: 'c' } },
    { op: 'd', before: { id: '2.000' } },
  ]);
  await host.commit();

  expect((await client.query('select id::text, v from keys')).rows).toEqual([{ id: '1.00', v: 'b' }]);
});

test('units and widths that only drivers of other vendors send are taken exactly', async () => {
  const { uri, client } = await freshDatabase(inject('postgres18'), 'sink');
  const columns: [string, DataType, ColumnBuilder][] = [
    ['id', new Int16(), new Int32Builder()],
    ['big', new Uint32(), new Int32Builder()],
    ['s', new TimestampSecond(), int64(-1n)],
    ['ms', new TimestampMillisecond('UTC'), int64(-1n)],
    ['ns', new TimestampNanosecond('UTC'), int64(-1_000n)],
    ['text', new LargeUtf8(), new BytesBuilder()],
  ];
  const shape = {
    fields: columns.map(([name, type]) => new Field(name, type, name !== 'id')),
    primaryKey: ['id'],
    before: 'none' as const,
  };
  const sink = openSink(uri);
  await sink.ensure(ensureRequest('foreign', shape), shape);
  const host = new TableHost(sink, 'foreign', shape);
  await host.open();

  await host.writeBatch(foreignBatch(shape));
  await host.commit();

  await client.query("set timezone = 'UTC'");
  const { rows } = await client.query('select id::text, big::text, s::text, ms::text, ns::text, "text" from "foreign"');
  expect(rows).toEqual([
    {
      id: '-7',
      big: '4294967295',
      s: '1969-12-31 23:59:59',
      ms: '1969-12-31 23:59:59.999+00',
      ns: '1969-12-31 23:59:59.999999+00',
      text: 'hé',
    },
  ]);
});

function int64(value: bigint): Int64Builder {
  const builder = new Int64Builder();
  builder.appendBigInt(value);
  return builder;
}

/** One row, laid out by hand: the builders have no small integers and no large texts. */
function foreignBatch(shape: Parameters<typeof changeSchema>[0]): ChangeBatch {
  const text = Buffer.from('hé');
  const value = (bytes: Uint8Array, ...more: Uint8Array[]) => ({
    nodes: [{ length: 1, nullCount: 0 }],
    buffers: [new Uint8Array(0), bytes, ...more],
  });
  const children = [
    value(new Uint8Array(Int16Array.of(-7).buffer)),
    value(new Uint8Array(Uint32Array.of(4294967295).buffer)),
    value(new Uint8Array(BigInt64Array.of(-1n).buffer)),
    value(new Uint8Array(BigInt64Array.of(-1n).buffer)),
    value(new Uint8Array(BigInt64Array.of(-1_000n).buffer)),
    value(new Uint8Array(BigInt64Array.of(0n, BigInt(text.length)).buffer), text),
  ];
  const after = {
    nodes: [{ length: 1, nullCount: 0 }, ...children.flatMap(({ nodes }) => nodes)],
    buffers: [new Uint8Array(0), ...children.flatMap(({ buffers }) => buffers)],
  };
  const op = value(new Uint8Array(Int32Array.of(0, 1).buffer), Buffer.from('c'));
  const offset = value(new Uint8Array(Int32Array.of(0, 1).buffer), Buffer.of(1));
  const ts = value(new Uint8Array(8));
  const { header, body } = encodeColumns([op, after, offset, ts], 1);
  return new ChangeBatch(changeSchema(shape), shape, { seq: 1, rows: 1 }, header, Buffer.concat(body));
}

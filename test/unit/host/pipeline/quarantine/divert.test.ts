import { asIpcStream, changeSchema, encodeSchemaHeader, type TableShape } from '@urutau/contract';
import { ChangeBatchBuilder, type Op } from '@urutau/sdk';
import { Type, tableFromIPC, type Vector } from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Batch, batchOf } from '../../../../../host/pipeline/batch.ts';
import { divert } from '../../../../../host/pipeline/quarantine/divert.ts';
import { effectBatch, effectsOf } from '../../../../../host/pipeline/quarantine/effects.ts';
import {
  keyOf,
  QUARANTINED_KEYS_MAX,
  QuarantinedKeys,
} from '../../../../../host/pipeline/quarantine/quarantined-keys.ts';
import { appendRow, randomRows, sampleFields, type Value } from '../../../sdk/typescript/columns/random-columns.ts';

const KEY = sampleFields().findIndex(({ name }) => name === 'int64');
const SHAPE: TableShape = { fields: sampleFields(), primaryKey: ['int64'], before: 'full' };
const JOINING = { since: 0n, run: 'r1', table: 'public.orders', why: 'a test' };

interface Change {
  op: Op;
  before: Value[] | null;
  after: Value[] | null;
}

/** Changes over a handful of keys, so that quarantined ones are among them. */
const row = randomRows(1)
  .filter((rows) => rows.length === 1)
  .chain(([values]) => fc.bigInt({ min: 0n, max: 5n }).map((key) => values!.with(KEY, key)));
const change: fc.Arbitrary<Change> = fc.oneof(
  row.map((after): Change => ({ op: 'c', before: null, after })),
  fc.tuple(row, row).map(([before, after]): Change => ({ op: 'u', before, after })),
  row.map((before): Change => ({ op: 'd', before, after: null })),
);
const changes = fc.array(change, { minLength: 1, maxLength: 20 });
const quarantined = fc.uniqueArray(fc.bigInt({ min: 0n, max: 5n }), { maxLength: 3 });

test('what passes and what is set aside are together all rows, in order and bit for bit', () => {
  fc.assert(
    fc.property(changes, quarantined, (records, keyValues) => {
      const batch = encode(records);
      const keys = quarantining(keyValues);

      const { passed, rows, letters } = divertWith(batch, keys);

      const aside = new Set(keyValues);
      const passes = records.map(({ before, after }) => {
        const touched = [before, after].flatMap((image) => (image === null ? [] : [image[KEY] as bigint]));
        if (!touched.some((key) => aside.has(key))) return true;
        for (const key of touched) aside.add(key);
        return false;
      });
      const all = read(batch);
      const expected = (wanted: boolean) => all.filter((_, index) => passes[index] === wanted);
      expect(passed === null ? [] : read(passed)).toEqual(expected(true));
      expect(letters.flatMap(({ change }) => readIpc(change))).toEqual(expected(false));
      expect(rows ?? records.map((_, index) => index)).toEqual([...passes.keys()].filter((index) => passes[index]));
      if (passed) expect(passed.envelope).toMatchObject({ rows: expected(true).length, offset: 'AQ==' });
      expect(letters.map(({ ordinal }) => ordinal)).toEqual(letters.map((_, index) => BigInt(index)));
    }),
    { numRuns: 40 },
  );
}, 60_000);

test('a batch without a row of a quarantined key passes as the very bytes that it is', () => {
  const batch = encode([{ op: 'c', before: null, after: oneRow(7n) }]);

  expect(divertWith(batch, QuarantinedKeys.none()).passed).toBe(batch);
  expect(divertWith(batch, quarantining([8n])).passed).toBe(batch);
});

test('the newest effects of the dead letters leave each key as the changes themselves would', () => {
  fc.assert(
    fc.property(changes, (records) => {
      const { letters } = divertWith(encode(records), quarantining([0n, 1n, 2n, 3n, 4n, 5n]));
      const expected = new Map<bigint, string>();
      for (const [index, text] of read(encode(records)).entries()) {
        const { op, before, after } = records[index]!;
        if (before) expected.delete(before[KEY] as bigint);
        if (op !== 'd') expected.set(after![KEY] as bigint, JSON.stringify(JSON.parse(text).after));
      }

      const newest = new Map(letters.flatMap(effectsOf).map((effect) => [effect.key.hash, effect]));
      const state = new Map<bigint, string>();
      for (const effect of newest.values()) {
        const [text] = read(effectBatch(effect));
        const { op, before, after } = JSON.parse(text!);
        expect([op, op === 'c' ? before : after]).toEqual([effect.kind === 'upsert' ? 'c' : 'd', null]);
        if (op === 'c') state.set(BigInt(after.int64), JSON.stringify(after));
      }

      expect(state).toEqual(expected);
    }),
    { numRuns: 40 },
  );
}, 60_000);

test('rows of the snapshot are named by their key, so that one which is read again takes its own place', () => {
  const first = encode([{ op: 'c', before: null, after: oneRow(7n) }], 'snapshot');
  const again = encode(
    [1n, 7n].map((key) => ({ op: 'c', before: null, after: oneRow(key) })),
    'snapshot',
  );

  const [one] = divertWith(first, quarantining([7n])).letters;
  const [two] = divertWith(again, quarantining([7n])).letters;

  expect(two!.position).toBe(one!.position);
  expect(one!.position).toMatch(/^snapshot:/);
});

test('changes of two keys are told apart, also where another process of the source gave them the same offset', () => {
  const insertOf = (key: bigint) => encode([{ op: 'c', before: null, after: oneRow(key) }]);
  const positions = [7n, 8n, 7n].map((key) => divertWith(insertOf(key), quarantining([7n, 8n])).letters[0]!.position);

  expect(positions[1]).not.toBe(positions[0]);
  expect(positions[2]).toBe(positions[0]);
});

test('a key more than a checkpoint holds is refused, also one that a row only moves to', () => {
  const keys = QuarantinedKeys.none();
  for (let i = 0; i < QUARANTINED_KEYS_MAX - 1; i++) keys.add({ hash: `h${i}`, text: '' }, JOINING);
  keys.add(hashOf(7n), JOINING);
  keys.add(hashOf(7n), JOINING);

  expect(() => divertWith(encode([{ op: 'u', before: oneRow(7n), after: oneRow(8n) }]), keys)).toThrow(
    '1,000 keys of public.orders are quarantined, and one more would be',
  );
});

function divertWith(batch: Batch, keys: QuarantinedKeys) {
  let ordinal = 0n;
  return divert(batch, {
    pipeline: 'shop',
    run: 'r1',
    table: 'public.orders',
    target: 'bronze.orders',
    shape: SHAPE,
    keys,
    nextOrdinal: () => ordinal++,
    refusalOf: () => null,
    wallMs: () => 0,
  });
}

function quarantining(values: readonly bigint[]): QuarantinedKeys {
  const keys = QuarantinedKeys.none();
  for (const value of values) keys.add(hashOf(value), JOINING);
  return keys;
}

/** The key as any change of it would have it. */
function hashOf(value: bigint) {
  const field = SHAPE.fields[KEY]!;
  const buffers = [new Uint8Array(BigInt64Array.of(value).buffer)];
  return keyOf([{ field, length: 1, validity: null, buffers, children: [] }], 0)!;
}

function oneRow(key: bigint): Value[] {
  return SHAPE.fields.map((_, index) => (index === KEY ? key : null));
}

function encode(records: readonly Change[], phase: 'snapshot' | 'stream' = 'stream'): Batch {
  const builder = new ChangeBatchBuilder(SHAPE);
  for (const [index, { op, before, after }] of records.entries()) {
    if (before) {
      builder.openBefore();
      appendRow(builder.before!, before, true);
    }
    if (after) appendRow(builder.after, after, true);
    builder.close(op, Uint8Array.of(index >> 8, index), 1_000_000 + index);
  }
  const { header, body, ops } = builder.finish();
  return batchOf({ seq: 1, rows: records.length, ops, offset: 'AQ==', phase }, header, body);
}

function read({ header, body }: Batch): string[] {
  return readIpc(asIpcStream(encodeSchemaHeader(changeSchema(SHAPE)), header, Buffer.concat(body)));
}

/** Each row as text, read by apache-arrow alone. */
function readIpc(bytes: Uint8Array): string[] {
  return tableFromIPC(bytes).batches.flatMap((batch) =>
    Array.from({ length: batch.numRows }, (_, row) => {
      const [op, before, after, offset, time] = ['op', 'before', 'after', 'offset', 'ts_source'].map((name) =>
        batch.getChild(name),
      );
      const image = (column: typeof before) => (column!.isValid(row) ? valuesOf(column!, row) : null);
      const stamp = time!.data[0]!.values[row];
      return JSON.stringify({
        op: op!.get(row),
        before: image(before),
        after: image(after),
        offset: plain(offset!.get(row)),
        stamp: String(stamp),
      });
    }),
  );
}

/** Times as the integers that they are: apache-arrow would make numbers of them. */
function valuesOf(image: Vector, row: number): Record<string, unknown> {
  return Object.fromEntries(
    SHAPE.fields.map(({ name, type }, index) => {
      const child = image.getChildAt(index)!;
      if (!child.isValid(row)) return [name, null];
      return [name, plain(type.typeId === Type.Timestamp ? child.data[0]!.values[row] : child.get(row))];
    }),
  );
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  return value;
}

import { METADATA } from '@urutau/contract';
import { Field, Int32, Schema, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { expect, test } from 'vitest';
import type { RowPicture } from '../../../../host/flight/read-rows.ts';
import { type CompareOptions, compareTable, type TableSides } from '../../../../host/verify/compare-table.ts';
import type { Side } from '../../../../host/verify/row-hashes.ts';

/** Rows by their key, each with its value and version. */
type Rows = Map<number, [value: string, version: number]>;

const KEY = new Map([[METADATA.primaryKey as string, '["id"]']]);
const FIELDS = [new Field('id', new Int32()), new Field('value', new Utf8(), true)];
const VERSION = new Field('version', new Int32(), true, new Map([[METADATA.rowVersion as string, 'true']]));
const LIMITS: CompareOptions = { rowsMax: 1_000, looksMax: 6, namedMax: 100 };

function rows(count: number, version = 1): Rows {
  return new Map(Array.from({ length: count }, (_, id) => [id, [`value ${id}`, version]]));
}

function picture(content: Rows, versions: boolean): RowPicture {
  const schema = new Schema(versions ? [...FIELDS, VERSION] : FIELDS, KEY);
  const [ids, all] = [[...content.keys()], [...content.values()]];
  const columns = {
    id: vectorFromArray(ids, new Int32()),
    value: vectorFromArray(
      all.map(([value]) => value),
      new Utf8(),
    ),
    ...(versions
      ? {
          version: vectorFromArray(
            all.map(([, version]) => version),
            new Int32(),
          ),
        }
      : {}),
  };
  return {
    schema,
    endOffset: '',
    estimatedRows: null,
    async *batches() {
      if (ids.length > 0) yield* new Table(schema, columns).batches;
    },
  };
}

/** Two sides in memory. `beforeRead` may change them: everything else lives while it is compared. */
function sides(content: Record<Side, Rows>, beforeRead: (side: Side, read: number) => void = () => {}) {
  const reads = { source: 0, destination: 0 };
  const both: TableSides = {
    read: async (side, { versions }) => {
      beforeRead(side, ++reads[side]);
      return picture(content[side], versions);
    },
    passed: async () => {},
    progress: () => {},
  };
  return { both, reads };
}

const TABLE = { source: 'public.t', target: 'public.t' };

test('equal tables are read once', async () => {
  const { both, reads } = sides({ source: rows(500), destination: new Map([...rows(500, 7)].reverse()) });

  expect(await compareTable(TABLE, both, LIMITS)).toEqual({
    rows: { source: 500, destination: 500 },
    counts: { missing: 0, extra: 0, different: 0, duplicated: 0, unsettled: 0 },
    found: [],
    left: null,
  });
  expect(reads).toEqual({ source: 1, destination: 1 });
});

test('two empty tables are equal, and rows of an empty one are missing', async () => {
  expect(await compareTable(TABLE, sides({ source: rows(0), destination: rows(0) }).both, LIMITS)).toMatchObject({
    rows: { source: 0, destination: 0 },
    left: null,
  });
  expect(await compareTable(TABLE, sides({ source: rows(0), destination: rows(3) }).both, LIMITS)).toMatchObject({
    counts: { missing: 0, extra: 3, different: 0, duplicated: 0, unsettled: 0 },
  });
});

test('an empty destination of a large table is looked into a slice at a time, until enough is known', async () => {
  const { both, reads } = sides({ source: rows(20_000), destination: rows(0) });

  const { counts, found, left } = await compareTable(TABLE, both, { ...LIMITS, namedMax: 1_500 });

  expect(counts.missing).toBeGreaterThanOrEqual(1_500);
  expect(counts.missing).toBeLessThanOrEqual(2_000);
  expect(found).toHaveLength(1_500);
  expect(left!.rows).toEqual({ source: 20_000 - counts.missing, destination: 0 });
  expect(reads.source).toBeLessThan(8);
});

test('a destination that only lags is equal once it has caught up, slice after slice', async () => {
  const content = { source: rows(5_000, 2), destination: rows(0) };
  const { both } = sides(content, (side, read) => {
    if (side === 'destination' && read === 2) content.destination = rows(5_000, 3);
  });

  const { counts, left } = await compareTable(TABLE, both, LIMITS);

  expect([counts, left]).toEqual([{ missing: 0, extra: 0, different: 0, duplicated: 0, unsettled: 0 }, null]);
});

test('a row that changes at every look is unsettled, and one that stopped being copied differs though its source goes on', async () => {
  const content = { source: rows(100), destination: rows(100) };
  content.destination.set(8, ['stuck', 1]);
  const { both } = sides(content, (side, read) => {
    // Each side is written before it is read, so that the two never show the same.
    content[side].set(7, [`${side} ${read}`, read]);
    if (side === 'source') content.source.set(8, [`goes on ${read}`, read]);
  });

  const { counts, found } = await compareTable(TABLE, both, LIMITS);

  expect(counts).toEqual({ missing: 0, extra: 0, different: 1, duplicated: 0, unsettled: 1 });
  expect(found).toEqual([{ kind: 'different', key: 'id=8', columns: ['value'] }]);
});

test('a row that goes back and forth is no difference: its version tells that it moved', async () => {
  const content = { source: rows(10), destination: rows(10) };
  const { both } = sides(content, (side, read) => {
    content[side].set(3, [side === 'source' ? 'one' : 'other', read]);
    // Here and gone between any two looks.
    if (side === 'destination') content.destination.set(99, ['passing by', read]);
  });

  const { counts } = await compareTable(TABLE, both, LIMITS);

  expect(counts).toEqual({ missing: 0, extra: 0, different: 0, duplicated: 0, unsettled: 2 });
});

test('a key that two rows of the destination share is named, also beside the row that is right', async () => {
  const byValue = { ...TABLE, primaryKey: ['value'] };
  const content = { source: rows(10), destination: rows(10) };
  content.destination.set(10, ['value 0', 1]).set(11, ['value 0', 1]).set(12, ['value 7', 1]);
  const { both } = sides(content);

  const { counts, found } = await compareTable(byValue, both, LIMITS);

  expect(counts).toEqual({ missing: 0, extra: 0, different: 0, duplicated: 2, unsettled: 0 });
  expect(found).toEqual([
    { kind: 'duplicated', key: 'value=value 0', columns: [] },
    { kind: 'duplicated', key: 'value=value 7', columns: [] },
  ]);
});

test('a table without a key, and a key that two rows of the source share, are refused with what to do', async () => {
  const shared = { ...TABLE, primaryKey: ['value'] };
  const content = rows(3);
  content.set(1, ['value 0', 1]);

  await expect(
    compareTable({ ...TABLE, primaryKey: [] }, sides({ source: content, destination: content }).both, LIMITS),
  ).rejects.toThrow('public.t has no key by which its rows could be compared');
  await expect(compareTable(shared, sides({ source: content, destination: rows(3) }).both, LIMITS)).rejects.toThrow(
    'two rows of public.t have the same key at the source: value=value 0',
  );
});

import { expect, test } from 'vitest';
import { appendRows, upsertRows } from '../../../../../drivers/postgres/sink/change-rows.ts';
import { batchOf, type Change, shapeOf } from '../../../../integration/postgres/sink-harness.ts';

const SHAPE = shapeOf({ a: 'string', b: 'int64', c: 'decimal(9,2)', v: 'string' }, ['a', 'b', 'c'], 'full');
const KEY = [0, 1, 2];
const ROW = { a: 'x', b: 1n, c: 5n, v: 'v' };

test.each<[string, Change[], string[]]>([
  ['an insert is an upsert', [{ op: 'c', after: ROW }], ['0 upsert']],
  ['an update without a before-image is an upsert', [{ op: 'u', after: ROW }], ['0 upsert']],
  ['an update that keeps the key is an upsert', [{ op: 'u', before: { ...ROW, v: 'w' }, after: ROW }], ['0 upsert']],
  [
    'an update of any key column is a delete and an upsert',
    [
      { op: 'u', before: { ...ROW, a: 'y' }, after: ROW },
      { op: 'u', before: { ...ROW, b: 2n }, after: ROW },
      { op: 'u', before: { ...ROW, c: 6n }, after: ROW },
    ],
    ['0 delete', '0 upsert', '1 delete', '1 upsert', '2 delete', '2 upsert'],
  ],
  [
    'a delete is a delete',
    [
      { op: 'd', before: ROW },
      { op: 'c', after: ROW },
    ],
    ['0 delete', '1 upsert'],
  ],
])('%s', (_, changes, expected) => {
  const { count, rows, deletes } = upsertRows(batch(changes), KEY, 0, changes.length);

  expect(Array.from({ length: count }, (_, tuple) => `${rows[tuple]} ${deletes[tuple] ? 'delete' : 'upsert'}`)).toEqual(
    expected,
  );
});

test('an append table gets one row for each change, or none for a delete that is skipped', () => {
  const changes: Change[] = [
    { op: 'd', before: ROW },
    { op: 'u', before: { ...ROW, a: 'y' }, after: ROW },
  ];

  expect(appendRows(batch(changes), 'record', 0, 2).count).toBe(2);
  expect(appendRows(batch(changes), 'skip', 0, 2)).toMatchObject({
    count: 1,
    after: { length: 1 },
    before: { length: 0 },
  });
});

test('a change without the image that it needs breaks the contract', () => {
  expect(() => upsertRows(batch([{ op: 'd' }]), KEY, 0, 1)).toThrow(/op d came without its image before/);
  expect(() => appendRows(batch([{ op: 'c' }]), 'record', 0, 1)).toThrow(/op c came without its image after/);
});

function batch(changes: Change[]) {
  return batchOf(SHAPE, changes, { seq: 1, rows: changes.length });
}

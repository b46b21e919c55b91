import { expect, test } from 'vitest';
import { ALL_CASES, Coverage, casesOf } from '../../oracle/coverage.ts';
import type { Statement, Transaction } from '../../oracle/transaction.ts';

const BELOW = 2n ** 63n - 1n;
const FROM = 2n ** 63n;

test('the gate names every case that was demanded and not hit', () => {
  const coverage = new Coverage();
  for (const one of ALL_CASES) if (one !== 'items: key change' && one !== 'backlog episode') coverage.hit(one);

  expect(coverage.missing(ALL_CASES)).toEqual(['items: key change', 'backlog episode']);
  expect(coverage.missing(['items: key change'])).toEqual(['items: key change']);
  expect(new Coverage().missing(ALL_CASES)).toEqual(ALL_CASES);
});

test.each<[string, Statement[], string[]]>([
  ['an insert below 2^63', [inserted(BELOW)], ['accounts: insert', 'accounts: insert below 2^63']],
  ['an insert at 2^63', [inserted(FROM)], ['accounts: insert', 'accounts: insert from 2^63']],
  [
    'two rows, one with a key that was used before',
    [{ kind: 'insert', table: 'items', rows: [one('a'), { ...one('b'), reused: true }] }],
    ['multi-row insert', 'items: insert', 'items: insert', 'items: reused key'],
  ],
  ['a delete', [{ kind: 'delete', table: 'events', code: 5n }], ['events: delete']],
  ['an update of the key', [updated({ to: 6n })], ['events: update', 'events: key change']],
  [
    'an update beside a large payload',
    [updated({ payload: undefined, keptBytes: 9_000 })],
    ['events: update', 'large payload left alone by an update'],
  ],
  ['an update beside a small payload', [updated({ payload: undefined, keptBytes: 90 })], ['events: update']],
  ['a payload that becomes NULL', [updated({ payload: null })], ['events: update', 'payload set to NULL']],
])('%s hits what it is, and nothing more', (_, statements, cases) => {
  // Two rows are neither a single row nor the most.
  expect(casesOf({ statements, rows: 2, end: 'commit' }, { committed: true, rowsMax: 3 })).toEqual(cases);
});

test('what a savepoint took back is not hit, and that it did is', () => {
  const statements: Statement[] = [
    { kind: 'delete', table: 'items', code: 'a' },
    { kind: 'savepoint' },
    { kind: 'delete', table: 'events', code: 5n },
    { kind: 'undo-to-savepoint' },
  ];

  expect(casesOf({ statements, rows: 2, end: 'commit' }, { committed: true, rowsMax: 3 })).toEqual([
    'savepoint undone',
    'items: delete',
  ]);
});

test('a transaction that was undone hits nothing, save that it was rolled back where it meant to', () => {
  const transaction: Transaction = { statements: [inserted(FROM)], rows: 1, end: 'commit' };

  expect(casesOf(transaction, { committed: false, rowsMax: 1 })).toEqual([]);
  expect(casesOf({ ...transaction, end: 'rollback' }, { committed: false, rowsMax: 1 })).toEqual([
    'rolled-back transaction',
  ]);
});

test('one row is a single-row transaction, the most rows a maximal one, two tables several', () => {
  const statements: Statement[] = [inserted(FROM), { kind: 'delete', table: 'items', code: 'a' }];
  const sizes = (rows: number) =>
    casesOf({ statements, rows, end: 'commit' }, { committed: true, rowsMax: 150 }).filter((name) =>
      name.includes('transaction'),
    );

  expect([sizes(1), sizes(149), sizes(150)]).toEqual([
    ['single-row transaction', 'several tables in one transaction'],
    ['several tables in one transaction'],
    ['maximal transaction', 'several tables in one transaction'],
  ]);
});

function one(code: bigint | string) {
  return { code, rev: 1, payload: null, reused: false };
}

function inserted(code: bigint): Statement {
  return { kind: 'insert', table: 'accounts', rows: [one(code)] };
}

function updated(more: Partial<Extract<Statement, { kind: 'update' }>>): Statement {
  return { kind: 'update', table: 'events', code: 5n, to: 5n, rev: 1, payload: 'p', keptBytes: 0, ...more };
}

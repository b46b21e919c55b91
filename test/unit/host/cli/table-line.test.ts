import { expect, test } from 'vitest';
import { pauseLines, quarantineLines, tableLine } from '../../../../host/cli/table-line.ts';
import { tableStatus } from './table-status.ts';

test('one line tells what was done with a table', () => {
  const totals = {
    snapshotRows: 1200,
    inserts: 1,
    updates: 2,
    deletes: 0,
    commits: 1,
    bytes: 9,
    truncatesIgnored: 0,
    quarantined: 0,
  };

  expect(tableLine(tableStatus({ state: 'done', totals }))).toBe(
    'public.orders -> bronze.orders: done; 1,200 rows copied, 1 insert, 2 updates, 0 deletes in 1 commit',
  );
});

test('a paused table says why, with the key of the row, and what to do', () => {
  const reason = {
    by: 'fault',
    code: 'row-refused',
    message: 'amount is null',
    remedy: 'Set it.',
    key: '{"id":7}',
  } as const;

  expect(pauseLines({ reason })).toEqual([
    '  row-refused: amount is null (row with key {"id":7})',
    '  remedy: Set it.',
  ]);
  expect(pauseLines({ reason: null })).toEqual([]);
});

test('a table with quarantined keys says how many, which row was refused last, and what to do', () => {
  const last = { key: '{"id":7}', op: 'c', code: 'row-refused', reason: 'a check constraint fails' } as const;

  expect(quarantineLines(tableStatus({ quarantined: { keys: 2, last } }))).toEqual([
    'public.orders: 2 keys quarantined',
    '  last refused: {"id":7}: row-refused: a check constraint fails',
    '  remedy: correct what the target refuses, then run urutau-host table replay public.orders',
  ]);
  expect(quarantineLines(tableStatus({ quarantined: { keys: 0, last } }))).toEqual([]);
});

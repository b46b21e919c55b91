import { expect, test } from 'vitest';
import { snapshotProgress } from '../../../../host/cli/snapshot-progress.ts';
import { tableStatus } from './table-status.ts';

const copying = (snapshotRows: number) =>
  tableStatus({
    state: 'snapshotting',
    snapshot: { rangesLeft: 3 },
    estimatedRows: 10_000,
    totals: { ...tableStatus().totals, snapshotRows },
  });

test('progress tells rows, the estimate and what is left, and the average rate once rows have come', () => {
  const progress = snapshotProgress();

  expect(progress([copying(1_000), tableStatus()], 0)).toBe('public.orders 1,000 of about 10,000 rows, 3 ranges left');
  expect(progress([copying(3_000), tableStatus()], 500)).toBe(
    'public.orders 3,000 of about 10,000 rows, 3 ranges left | 4,000 rows/s',
  );
  expect(progress([copying(3_000), tableStatus()], 1_000)).toContain('| 2,000 rows/s');
});

test('there is nothing to tell while no table is copied', () => {
  expect(snapshotProgress()([tableStatus()], 0)).toBeNull();
});

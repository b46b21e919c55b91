import { expect, test } from 'vitest';
import { runSummary } from '../../../../host/cli/run-summary.ts';
import { tableStatus } from './table-status.ts';

test('the summary counts rows and bytes over all tables, and holds nothing but what it promises', () => {
  const usage = (cpuSeconds: number) => ({ cpuSeconds, peakMemoryBytes: 1024 });
  const orders = {
    snapshotRows: 5,
    inserts: 1,
    updates: 2,
    deletes: 3,
    commits: 4,
    bytes: 100,
    truncatesIgnored: 9,
    quarantined: 0,
  };
  const items = { ...orders, snapshotRows: 10 };

  const summary = runSummary(
    { tables: [tableStatus({ source: 'orders', totals: orders }), tableStatus({ source: 'items', totals: items })] },
    { seconds: 1.5, usage: { host: usage(1), source: usage(2), sink: usage(3) } },
  );

  expect(summary).toEqual({
    rows: 27,
    bytes: 200,
    seconds: 1.5,
    tables: {
      orders: { snapshotRows: 5, inserts: 1, updates: 2, deletes: 3, commits: 4 },
      items: { snapshotRows: 10, inserts: 1, updates: 2, deletes: 3, commits: 4 },
    },
    processes: [
      { role: 'host', cpuSeconds: 1, peakMemoryBytes: 1024 },
      { role: 'source', cpuSeconds: 2, peakMemoryBytes: 1024 },
      { role: 'sink', cpuSeconds: 3, peakMemoryBytes: 1024 },
    ],
  });
});

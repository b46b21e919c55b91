import type { TableStatus } from '../../../../host/pipeline/status.ts';

/** A table that streams, with changes to it. */
export function tableStatus(changes: Partial<TableStatus> = {}): TableStatus {
  return {
    source: 'public.orders',
    target: 'bronze.orders',
    state: 'streaming',
    reason: null,
    snapshot: 'done',
    estimatedRows: null,
    offset: null,
    totals: {
      snapshotRows: 0,
      inserts: 0,
      updates: 0,
      deletes: 0,
      commits: 0,
      bytes: 0,
      truncatesIgnored: 0,
      quarantined: 0,
    },
    lastCommitAt: null,
    lastCommitMillis: null,
    lastCommitTs: null,
    quarantined: { keys: 0, last: null },
    ...changes,
  };
}

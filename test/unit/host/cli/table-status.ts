import type { TableStatus } from '../../../../host/pipeline/status.ts';
import { NO_TOTALS } from '../../../../host/pipeline/table/table.ts';

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
    totals: NO_TOTALS,
    lastCommitAt: null,
    lastCommitMillis: null,
    lastCommitTs: null,
    quarantined: { keys: 0, last: null },
    ...changes,
  };
}

import type { PipelineStatus, TableStatus } from '../../../../host/pipeline/status.ts';
import { NO_TOTALS } from '../../../../host/pipeline/table/table.ts';
import { NO_FAILURES } from '../../../../host/supervisor/failure-reason.ts';
import type { SupervisorStatus } from '../../../../host/supervisor/supervisor.ts';

export const readyDriver: SupervisorStatus = {
  state: 'ready',
  sinceMs: 0,
  pid: 11,
  restarts: 0,
  breaker: 'closed',
  nextStartAtMs: null,
  lastFailure: null,
  failures: [],
  failuresByReason: NO_FAILURES,
};

export const heldDriver: SupervisorStatus = {
  ...readyDriver,
  state: 'held',
  pid: null,
  restarts: 3,
  breaker: 'open',
  lastFailure: { atMs: 0, message: 'source driver postgres exited with 1', remedy: 'Read its log.' },
  failures: [{ atMs: 0, reason: 'exit', message: 'source driver postgres exited with 1' }],
  failuresByReason: { ...NO_FAILURES, exit: 3 },
};

export const streamingTable: TableStatus = {
  source: 'public.orders',
  target: 'copy.orders',
  state: 'streaming',
  reason: null,
  snapshot: 'done',
  estimatedRows: 100,
  offset: 'AAAA',
  totals: {
    snapshotRows: 100,
    inserts: 3,
    updates: 2,
    deletes: 1,
    commits: 4,
    bytes: 5_000,
    truncatesIgnored: 1,
    quarantined: 0,
  },
  lastCommitAt: '2026-01-01T00:00:09.000Z',
  lastCommitMillis: 12,
  lastCommitTs: '2026-01-01T00:00:08.500000Z',
  quarantined: { keys: 0, last: null },
};

export const freshTable: TableStatus = {
  source: 'public.items',
  target: 'copy.items',
  state: 'waiting',
  reason: null,
  snapshot: 'not begun',
  estimatedRows: null,
  offset: null,
  totals: NO_TOTALS,
  lastCommitAt: null,
  lastCommitMillis: null,
  lastCommitTs: null,
  quarantined: { keys: 0, last: null },
};

export const runningPipeline: PipelineStatus = {
  pipeline: 'shop',
  run: 'run-1',
  startedAt: '2026-01-01T00:00:00.000Z',
  uptimeSec: 10,
  sessions: 2,
  source: readyDriver,
  sink: readyDriver,
  windowBytes: 77,
  tables: [streamingTable, freshTable],
};

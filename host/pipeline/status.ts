import type { SupervisorStatus } from '../supervisor/supervisor.ts';
import type { SetAside } from './quarantine/quarantining-stream.ts';
import type { PauseReason } from './table/state.ts';
import type { Table } from './table/table.ts';

export interface TableStatus {
  source: string;
  target: string;
  state: string;
  reason: PauseReason | null;
  snapshot: 'done' | 'not begun' | { rangesLeft: number } | 'one picture';
  estimatedRows: number | null;
  offset: string | null;
  totals: Table['totals'];
  lastCommitAt: string | null;
  lastCommitMillis: number | null;
  /** Commit time at the source of the newest change that is durable, RFC 3339. */
  lastCommitTs: string | null;
  /** Keys whose changes go to the dead letters, and the last row that was refused in this run. */
  quarantined: { keys: number; last: SetAside | null };
}

export interface PipelineStatus {
  pipeline: string;
  run: string;
  startedAt: string;
  uptimeSec: number;
  sessions: number;
  source: SupervisorStatus;
  sink: SupervisorStatus;
  windowBytes: number;
  tables: TableStatus[];
}

export function statusOf(table: Table): TableStatus {
  const { settings, state, checkpoint, totals, estimatedRows, lastCommitTs, lastCommitAtMs, lastCommitMillis } = table;
  return {
    source: settings.source,
    target: settings.target,
    state: state.kind,
    reason: state.kind === 'paused' ? state.reason : null,
    snapshot: snapshotOf(checkpoint?.snapshot),
    estimatedRows,
    offset: checkpoint?.offset ?? null,
    totals,
    lastCommitAt: lastCommitAtMs === null ? null : new Date(lastCommitAtMs).toISOString(),
    lastCommitMillis,
    lastCommitTs,
    quarantined: { keys: checkpoint?.quarantined?.length ?? 0, last: table.lastRefusal },
  };
}

function snapshotOf(snapshot: NonNullable<Table['checkpoint']>['snapshot'] | undefined): TableStatus['snapshot'] {
  if (snapshot === undefined) return 'not begun';
  if (snapshot === 'done') return 'done';
  return 'picture' in snapshot ? 'one picture' : { rangesLeft: snapshot.ranges.length };
}

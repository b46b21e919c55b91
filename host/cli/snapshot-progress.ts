import type { TableStatus } from '../pipeline/status.ts';
import { count } from './count.ts';

export type SnapshotStatus = Pick<TableStatus, 'source' | 'state' | 'snapshot' | 'estimatedRows' | 'totals'>;

/** Text about the tables that are being copied; null when none is. The rate is the average since the first such call. */
export function snapshotProgress(): (tables: readonly SnapshotStatus[], nowMs: number) => string | null {
  let began: { rows: number; atMs: number } | null = null;
  return (tables, nowMs) => {
    const copying = tables.filter(({ state }) => state === 'snapshotting');
    if (copying.length === 0) {
      began = null;
      return null;
    }
    const rows = tables.reduce((sum, { totals }) => sum + totals.snapshotRows, 0);
    began ??= { rows, atMs: nowMs };
    const seconds = (nowMs - began.atMs) / 1000;
    const rate = rows > began.rows ? [`${count(Math.round((rows - began.rows) / seconds), 'row')}/s`] : [];
    return [...copying.map(describe), ...rate].join(' | ');
  };
}

function describe({ source, snapshot, estimatedRows, totals: { snapshotRows } }: SnapshotStatus): string {
  const of = estimatedRows === null ? '' : ` of about ${estimatedRows.toLocaleString('en-US')}`;
  const left = typeof snapshot === 'object' ? `, ${count(snapshot.rangesLeft, 'range')} left` : '';
  return `${source} ${snapshotRows.toLocaleString('en-US')}${of} rows${left}`;
}

import type { PipelineStatus } from '../pipeline/status.ts';
import type { Usage } from '../supervisor/usage.ts';

/** What `run --summary FILE` writes. */
export interface RunSummary {
  /** Snapshot rows and changes that became durable in this run. */
  rows: number;
  bytes: number;
  seconds: number;
  tables: Record<string, { snapshotRows: number; inserts: number; updates: number; deletes: number; commits: number }>;
  processes: { role: 'host' | 'source' | 'sink'; cpuSeconds: number; peakMemoryBytes: number }[];
}

export function runSummary(
  { tables }: Pick<PipelineStatus, 'tables'>,
  { seconds, usage }: { seconds: number; usage: Record<'host' | 'source' | 'sink', Usage> },
): RunSummary {
  const sum = (of: (totals: (typeof tables)[number]['totals']) => number) =>
    tables.reduce((total, { totals }) => total + of(totals), 0);
  return {
    rows: sum(({ snapshotRows, inserts, updates, deletes }) => snapshotRows + inserts + updates + deletes),
    bytes: sum(({ bytes }) => bytes),
    seconds,
    tables: Object.fromEntries(
      tables.map(({ source, totals: { snapshotRows, inserts, updates, deletes, commits } }) => [
        source,
        { snapshotRows, inserts, updates, deletes, commits },
      ]),
    ),
    processes: (['host', 'source', 'sink'] as const).map((role) => {
      const { cpuSeconds, peakMemoryBytes } = usage[role];
      return { role, cpuSeconds, peakMemoryBytes };
    }),
  };
}

import type { DriverRole } from '../driver-packages/find.ts';
import type { PipelineStatus } from '../pipeline/status.ts';

/** What `GET /status` answers. */
export interface HostStatus extends PipelineStatus {
  /** Of the host's process. */
  pid: number;
}

export const STATUS_PATH = '/status';

export const TABLE_ACTIONS = ['pause', 'resume', 'resync', 'commit', 'replay'] as const;
export type TableAction = (typeof TABLE_ACTIONS)[number];

/** Where an action is posted to; the answer is the table's status, for `replay` what it has done. */
export function tablePath(table: string, action: TableAction): string {
  return `/tables/${encodeURIComponent(table)}/${action}`;
}

/** Null when the path is none that `tablePath` makes. */
export function parseTablePath(path: string): { table: string; action: TableAction } | null {
  const match = /^\/tables\/([^/]+)\/([a-z]+)$/.exec(path);
  const action = TABLE_ACTIONS.find((known) => known === match?.[2]);
  if (action === undefined) return null;
  try {
    return { table: decodeURIComponent(match![1]!), action };
  } catch {
    return null; // A percent sign that escapes nothing.
  }
}

/** Where closing a driver's breaker is posted to; the answer is the driver's status. */
export function resetPath(role: DriverRole): string {
  return `/drivers/${role}/reset`;
}

/** Null when the path is none that `resetPath` makes. */
export function parseResetPath(path: string): DriverRole | null {
  return (['source', 'sink'] as const).find((role) => path === resetPath(role)) ?? null;
}

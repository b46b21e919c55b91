export interface MetricSpec {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
  help: string;
  /** Upper bounds of a histogram. */
  buckets?: readonly number[];
}

/** Every metric of the host but those of its process. `table` is the table's full name at the source. */
export const METRICS = {
  rows: {
    name: 'urutau_rows_total',
    type: 'counter',
    labels: ['table', 'op'],
    help: 'Rows made durable in the destination since the host started, by snapshot, insert, update or delete.',
  },
  commits: {
    name: 'urutau_commits_total',
    type: 'counter',
    labels: ['table'],
    help: 'Commits in the destination since the host started.',
  },
  bytes: {
    name: 'urutau_bytes_total',
    type: 'counter',
    labels: ['table'],
    help: 'Arrow bytes made durable in the destination since the host started.',
  },
  commitDuration: {
    name: 'urutau_commit_duration_seconds',
    type: 'histogram',
    labels: [],
    help: 'Time from asking for a commit to its answer.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  lag: {
    name: 'urutau_lag_seconds',
    type: 'gauge',
    labels: ['table'],
    help: 'Age of the newest change that is durable, by its commit time at the source. Grows while nothing changes. Absent until a change is durable.',
  },
  tableState: {
    name: 'urutau_table_state',
    type: 'gauge',
    labels: ['table', 'state'],
    help: '1 for the state that the table is in: waiting, planning, snapshotting, streaming, paused or done; 0 for the others.',
  },
  snapshotRangesLeft: {
    name: 'urutau_snapshot_ranges_left',
    type: 'gauge',
    labels: ['table'],
    help: 'Ranges of the table that its snapshot has still to copy. Absent before the plan, and for a snapshot in one piece.',
  },
  truncatesIgnored: {
    name: 'urutau_truncates_ignored_total',
    type: 'counter',
    labels: ['table'],
    help: 'Truncates at the source that were not carried out because the table says ignore.',
  },
  quarantinedRows: {
    name: 'urutau_quarantined_rows_total',
    type: 'counter',
    labels: ['table'],
    help: 'Changes that went to the dead letters since the host started.',
  },
  quarantinedKeys: {
    name: 'urutau_quarantined_keys',
    type: 'gauge',
    labels: ['table'],
    help: 'Keys of the table whose changes go to the dead letters.',
  },
  inFlightBytes: {
    name: 'urutau_in_flight_bytes',
    type: 'gauge',
    labels: [],
    help: 'Bytes that left the source and are not yet durable.',
  },
  driverUp: {
    name: 'urutau_driver_up',
    type: 'gauge',
    labels: ['role', 'driver'],
    help: '1 while the driver is ready.',
  },
  driverRestarts: {
    name: 'urutau_driver_restarts_total',
    type: 'counter',
    labels: ['role'],
    help: 'Starts of the driver after the first.',
  },
  driverFailures: {
    name: 'urutau_driver_failures_total',
    type: 'counter',
    labels: ['role', 'reason'],
    help: 'Failures of the driver, of a start or later, by what became of it: unusable, refused, exit, signal, not-ready, bad-readiness, handshake, dead or unauthenticated.',
  },
  breakerState: {
    name: 'urutau_breaker_state',
    type: 'gauge',
    labels: ['role', 'state'],
    help: '1 for the state of the breaker: closed, open while starts are held back because the driver failed too often, or half-open during a trial; 0 for the others.',
  },
  sessions: {
    name: 'urutau_sessions_total',
    type: 'counter',
    labels: [],
    help: 'Sessions begun: the first one, and one after each recovery.',
  },
} as const satisfies Record<string, MetricSpec>;

export type MetricKey = keyof typeof METRICS;

/** Before the names of the metrics of the host's own process. */
export const PROCESS_PREFIX = 'urutau_host_';

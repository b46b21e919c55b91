import { Counter, collectDefaultMetrics, Gauge, Histogram, type OpenMetricsContentType, Registry } from 'prom-client';
import type { PipelineStatus, TableStatus } from '../pipeline/status.ts';
import type { TableState } from '../pipeline/table/state.ts';
import type { Breaker } from '../supervisor/breaker.ts';
import { METRICS, type MetricKey, type MetricSpec, PROCESS_PREFIX } from './catalog.ts';

export interface HostMetricsOptions {
  status: () => PipelineStatus;
  /** The drivers' names, by role. */
  drivers: Readonly<Record<'source' | 'sink', string>>;
  wallMs: () => number;
}

/**
 * The host's own metrics. What the pipeline knows is read from its status at each scrape and kept nowhere else; only
 * the durations of commits are told one by one.
 */
export class HostMetrics {
  readonly #options: HostMetricsOptions;
  readonly #registry = new Registry<OpenMetricsContentType>();
  readonly #commitDuration: Histogram;
  readonly #read: (status: PipelineStatus) => void;

  constructor(options: HostMetricsOptions) {
    this.#options = options;
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const { buckets, name, help } = METRICS.commitDuration;
    const registers = [this.#registry];
    this.#commitDuration = new Histogram({ name, help, buckets: [...buckets], registers });
    const setters = Object.entries(READINGS).map(([key, read]) => {
      const set = setter(METRICS[key as ReadMetric], this.#registry);
      return (status: PipelineStatus) => set(read({ ...options, status, nowMs: options.wallMs() }));
    });
    this.#read = (status) => {
      for (const set of setters) set(status);
    };
    collectDefaultMetrics({ register: this.#registry, prefix: PROCESS_PREFIX });
  }

  /** Called once per commit, with the time from the call to the answer. */
  observeCommit(millis: number): void {
    this.#commitDuration.observe(millis / 1_000);
  }

  /** OpenMetrics text. */
  text(): Promise<string> {
    this.#read(this.#options.status());
    return this.#registry.metrics();
  }
}

interface Reading extends Omit<HostMetricsOptions, 'status'> {
  status: PipelineStatus;
  nowMs: number;
}

type ReadMetric = Exclude<MetricKey, 'commitDuration'>;
type Sample = readonly [labels: Record<string, string>, value: number];

const READINGS: Record<ReadMetric, (reading: Reading) => readonly Sample[]> = {
  rows: perTable(({ totals: { snapshotRows, inserts, updates, deletes } }) => [
    [{ op: 'snapshot' }, snapshotRows],
    [{ op: 'insert' }, inserts],
    [{ op: 'update' }, updates],
    [{ op: 'delete' }, deletes],
  ]),
  commits: perTable(({ totals }) => [[{}, totals.commits]]),
  bytes: perTable(({ totals }) => [[{}, totals.bytes]]),
  // A source whose clock is ahead of ours must not show a negative age.
  lag: perTable(({ lastCommitTs }, { nowMs }) =>
    lastCommitTs === null ? [] : [[{}, Math.max(0, nowMs - Date.parse(lastCommitTs)) / 1_000]],
  ),
  tableState: perTable((table) => TABLE_STATES.map((state) => [{ state }, table.state === state ? 1 : 0])),
  snapshotRangesLeft: perTable(({ snapshot }) => {
    if (snapshot === 'done') return [[{}, 0]];
    return typeof snapshot === 'object' ? [[{}, snapshot.rangesLeft]] : [];
  }),
  truncatesIgnored: perTable(({ totals }) => [[{}, totals.truncatesIgnored]]),
  quarantinedRows: perTable(({ totals }) => [[{}, totals.quarantined]]),
  quarantinedKeys: perTable(({ quarantined }) => [[{}, quarantined.keys]]),
  inFlightBytes: ({ status }) => [[{}, status.windowBytes]],
  driverUp: perRole((role, { status, drivers }) => [
    [{ driver: drivers[role] }, status[role].state === 'ready' ? 1 : 0],
  ]),
  driverRestarts: perRole((role, { status }) => [[{}, status[role].restarts]]),
  driverFailures: perRole((role, { status }) =>
    Object.entries(status[role].failuresByReason).map(([reason, failures]) => [{ reason }, failures]),
  ),
  breakerState: perRole((role, { status }) =>
    BREAKER_STATES.map((state) => [{ state }, status[role].breaker === state ? 1 : 0]),
  ),
  sessions: ({ status }) => [[{}, status.sessions]],
};

const TABLE_STATES = Object.keys({
  waiting: true,
  planning: true,
  snapshotting: true,
  streaming: true,
  paused: true,
  done: true,
} satisfies Record<TableState['kind'], true>);

const BREAKER_STATES = ['closed', 'open', 'half-open'] as const satisfies readonly Breaker['kind'][];

function perTable(read: (table: TableStatus, reading: Reading) => readonly Sample[]) {
  return (reading: Reading): Sample[] =>
    reading.status.tables.flatMap((table) =>
      read(table, reading).map(([labels, value]) => [{ table: table.source, ...labels }, value] as const),
    );
}

function perRole(read: (role: 'source' | 'sink', reading: Reading) => readonly Sample[]) {
  return (reading: Reading): Sample[] =>
    (['source', 'sink'] as const).flatMap((role) =>
      read(role, reading).map(([labels, value]) => [{ role, ...labels }, value] as const),
    );
}

/** Replaces all samples of a metric. */
function setter({ type, name, help, labels }: MetricSpec, registry: Registry<OpenMetricsContentType>) {
  const config = { name, help, labelNames: [...labels], registers: [registry] };
  const metric = type === 'counter' ? new Counter(config) : new Gauge(config);
  return (samples: readonly Sample[]): void => {
    metric.reset();
    // Without a label the metric begins at 0 at each reset, so adding sets it.
    for (const [sampleLabels, value] of samples) metric.inc(sampleLabels, value);
  };
}

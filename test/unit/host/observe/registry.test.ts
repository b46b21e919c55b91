import { expect, test } from 'vitest';
import { METRICS } from '../../../../host/observe/catalog.ts';
import { parseExposition } from '../../../../host/observe/openmetrics.ts';
import { HostMetrics } from '../../../../host/observe/registry.ts';
import type { PipelineStatus } from '../../../../host/pipeline/status.ts';
import { NO_FAILURES } from '../../../../host/supervisor/failure-reason.ts';
import { heldDriver, runningPipeline, streamingTable } from './status-of-a-pipeline.ts';

const drivers = { source: 'postgres', sink: 'stdout' };
const wallMs = () => Date.parse('2026-01-01T00:00:10Z');

test('a scrape says what the pipeline says, however often it is asked', async () => {
  const metrics = new HostMetrics({ status: () => runningPipeline, drivers, wallMs });

  await metrics.text();
  const lines = (await metrics.text()).split('\n').filter((line) => /^urutau_(?!host_|commit_duration)/.test(line));

  expect(lines).toEqual([
    'urutau_rows_total{table="public.orders",op="snapshot"} 100',
    'urutau_rows_total{table="public.orders",op="insert"} 3',
    'urutau_rows_total{table="public.orders",op="update"} 2',
    'urutau_rows_total{table="public.orders",op="delete"} 1',
    'urutau_rows_total{table="public.items",op="snapshot"} 0',
    'urutau_rows_total{table="public.items",op="insert"} 0',
    'urutau_rows_total{table="public.items",op="update"} 0',
    'urutau_rows_total{table="public.items",op="delete"} 0',
    'urutau_commits_total{table="public.orders"} 4',
    'urutau_commits_total{table="public.items"} 0',
    'urutau_bytes_total{table="public.orders"} 5000',
    'urutau_bytes_total{table="public.items"} 0',
    'urutau_lag_seconds{table="public.orders"} 1.5',
    'urutau_table_state{table="public.orders",state="waiting"} 0',
    'urutau_table_state{table="public.orders",state="planning"} 0',
    'urutau_table_state{table="public.orders",state="snapshotting"} 0',
    'urutau_table_state{table="public.orders",state="streaming"} 1',
    'urutau_table_state{table="public.orders",state="paused"} 0',
    'urutau_table_state{table="public.orders",state="done"} 0',
    'urutau_table_state{table="public.items",state="waiting"} 1',
    'urutau_table_state{table="public.items",state="planning"} 0',
    'urutau_table_state{table="public.items",state="snapshotting"} 0',
    'urutau_table_state{table="public.items",state="streaming"} 0',
    'urutau_table_state{table="public.items",state="paused"} 0',
    'urutau_table_state{table="public.items",state="done"} 0',
    'urutau_snapshot_ranges_left{table="public.orders"} 0',
    'urutau_truncates_ignored_total{table="public.orders"} 1',
    'urutau_truncates_ignored_total{table="public.items"} 0',
    'urutau_quarantined_rows_total{table="public.orders"} 0',
    'urutau_quarantined_rows_total{table="public.items"} 0',
    'urutau_quarantined_keys{table="public.orders"} 0',
    'urutau_quarantined_keys{table="public.items"} 0',
    'urutau_in_flight_bytes 77',
    'urutau_driver_up{role="source",driver="postgres"} 1',
    'urutau_driver_up{role="sink",driver="stdout"} 1',
    'urutau_driver_restarts_total{role="source"} 0',
    'urutau_driver_restarts_total{role="sink"} 0',
    ...['source', 'sink'].flatMap((role) =>
      Object.keys(NO_FAILURES).map((reason) => `urutau_driver_failures_total{role="${role}",reason="${reason}"} 0`),
    ),
    ...['source', 'sink'].flatMap((role) => [
      `urutau_breaker_state{role="${role}",state="closed"} 1`,
      `urutau_breaker_state{role="${role}",state="open"} 0`,
      `urutau_breaker_state{role="${role}",state="half-open"} 0`,
    ]),
    'urutau_sessions_total 2',
  ]);
});

test('a scrape shows a table in snapshot, a driver held back, and no age below zero', async () => {
  const snapshotting = { ...streamingTable, state: 'snapshotting', snapshot: { rangesLeft: 5 } };
  const ahead = { ...streamingTable, source: 'public.ahead', lastCommitTs: '2026-01-01T00:00:11Z' };
  const status: PipelineStatus = { ...runningPipeline, source: heldDriver, tables: [snapshotting, ahead] };

  const text = await new HostMetrics({ status: () => status, drivers, wallMs }).text();

  expect(text).toContain('urutau_snapshot_ranges_left{table="public.orders"} 5\n');
  expect(text).toContain('urutau_driver_up{role="source",driver="postgres"} 0\n');
  expect(text).toContain('urutau_driver_restarts_total{role="source"} 3\n');
  expect(text).toContain('urutau_driver_failures_total{role="source",reason="exit"} 3\n');
  expect(text).toContain('urutau_breaker_state{role="source",state="closed"} 0\n');
  expect(text).toContain('urutau_breaker_state{role="source",state="open"} 1\n');
  expect(text).toContain('urutau_lag_seconds{table="public.ahead"} 0\n');
});

test('commits are counted into the histogram by their duration', async () => {
  const metrics = new HostMetrics({ status: () => runningPipeline, drivers, wallMs });
  metrics.observeCommit(30);
  metrics.observeCommit(2_000);

  const text = await metrics.text();

  expect(text).toContain('urutau_commit_duration_seconds_bucket{le="0.05"} 1\n');
  expect(text).toContain('urutau_commit_duration_seconds_sum 2.03\n');
  expect(text).toContain('urutau_commit_duration_seconds_count 2\n');
});

test('every metric of the catalogue is there, described, and so is the process of the host', async () => {
  const families = parseExposition(await new HostMetrics({ status: () => runningPipeline, drivers, wallMs }).text());
  const described = families.map(({ name, type, help }) => ({ name, type, help }));

  for (const { name, type, help } of Object.values(METRICS)) {
    expect(described).toContainEqual({ name: type === 'counter' ? name.replace(/_total$/, '') : name, type, help });
  }
  expect(described.map(({ name }) => name)).toContain('urutau_host_process_resident_memory_bytes');
});

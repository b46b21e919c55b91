import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, readJson } from '../pipeline/host-process.ts';
import { bundle } from '../sdk/bundle.ts';
import { driverFolder } from './driver-folder.ts';

const SLOW_SINK = await bundle('../../bench/drivers/slow-sink/main.ts');
const BYTES_PER_SECOND = 1_000_000;
/** The figures that are promised for a sink that keeps nothing, in bytes. */
const PEAK_BYTES_MAX = { host: 200e6, source: 250e6, sink: 150e6 };
/** On their way, about. */
const ROW_BYTES = 170;
const ROWS_AT_ONCE = 200_000;
const LOOK_EVERY_MS = 250;

interface Summary {
  rows: number;
  bytes: number;
  processes: { role: 'host' | 'source' | 'sink'; peakMemoryBytes: number }[];
}

/**
 * Runs a host for so long against a sink that takes 1 MB/s, while more rows wait at the source all the time; then stops it and
 * checks the memory of each process. Answers the peaks in words and how long the stop took.
 */
export async function slowDestination({ seconds, stop }: { seconds: number; stop: string }) {
  const source = await freshDatabase(inject('postgres18'), 'slow_src');
  await source.client.query(
    'create table wide (id bigint generated always as identity primary key, a text, b text, c numeric)',
  );
  const host = new HostProcess({
    pipeline: {
      pipeline: 'slow',
      source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
      sink: {
        driver: driverFolder('sink', ['node', SLOW_SINK]),
        config: { bytesPerSecond: BYTES_PER_SECOND },
        flush: { interval: '1s' },
      },
      supervision: { stop },
      tables: [{ source: 'public.wide', target: 'wide' }],
    },
  });
  const file = join(host.folder, 'summary.json');
  host.start('--summary', file);
  await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');
  const startMs = performance.now();
  let inserted = 0;
  let onTheirWayBytesMax = 0;
  for (let ms = 0; ms < 1_000 * seconds; ms = performance.now() - startMs) {
    if (inserted * ROW_BYTES < (ms / 1_000 + 40) * BYTES_PER_SECOND) {
      await source.client.query(
        `insert into wide (a, b, c) select md5(i::text), repeat(md5((-i)::text), 2), i * 1.01 from generate_series(1, ${ROWS_AT_ONCE}) i`,
      );
      inserted += ROWS_AT_ONCE;
    }
    await delay(LOOK_EVERY_MS); // Time has to pass for real: how long it goes on is what is tested.
    const { windowBytes } = await host.until('an answer', () => true);
    onTheirWayBytesMax = Math.max(onTheirWayBytesMax, windowBytes);
  }

  const stopMs = performance.now();
  expect(await host.stop(), host.output.slice(-4000)).toBe(0);
  const stoppedMs = performance.now() - stopMs;

  const { rows, bytes, processes } = readJson<Summary>(file);
  // Rows waited at the source to the end, and only the window was on its way.
  expect(inserted - rows).toBeGreaterThan(ROWS_AT_ONCE / 2);
  expect(onTheirWayBytesMax).toBeGreaterThan(0);
  expect(onTheirWayBytesMax).toBeLessThanOrEqual(64 * 1024 * 1024);
  const peaks = processes
    .map(({ role, peakMemoryBytes }) => `${role} ${Math.round(peakMemoryBytes / 1e6)} MB`)
    .join(', ');
  for (const { role, peakMemoryBytes } of processes) {
    expect(peakMemoryBytes, peaks).toBeLessThan(PEAK_BYTES_MAX[role]);
  }
  return { peaks, stoppedMs, bytes };
}

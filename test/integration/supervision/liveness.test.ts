import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { figure } from '../../figures.ts';
import { HostProcess, waitFor } from '../pipeline/host-process.ts';
import { bundle } from '../sdk/bundle.ts';
import { driverFolder } from './driver-folder.ts';

const SOURCE = await bundle('../supervision/stuck-source.ts');
const SINK = await bundle('../supervision/stuck-sink.ts');
const FALLS_SILENT = pathToFileURL(resolve(import.meta.dirname, '../../fixtures/preloads/falls-silent.mjs'));

/** With the default settings: two seconds seven times, and what is left of the first two; a second for a busy machine. */
const FOUND_MS = { least: 13_900, most: 17_000 };

async function streamingHost(way: 'wedged' | 'deaf' = 'wedged') {
  const host = new HostProcess({
    pipeline: {
      pipeline: 'liveness',
      source: { driver: driverFolder('source', ['node', SOURCE]), snapshotMode: 'none' },
      sink: { driver: driverFolder('sink', ['node', '--import', `${FALLS_SILENT}?${way}`, SINK]) },
      supervision: { backoff: { first: '100ms', max: '100ms' } },
      tables: [{ source: 'blobs', target: 'blobs' }],
    },
  }).start();
  const status = await host.until('streaming', ({ tables }) => tables[0]!.state === 'streaming');
  return { host, status };
}

/** How long it takes until the sink driver is given up, and why it is. */
async function found(signal: 'SIGSTOP' | 'SIGUSR2', way?: 'wedged' | 'deaf') {
  const { host, status } = await streamingHost(way);
  const { pid } = status.sink;
  const startMs = performance.now();
  process.kill(pid!, signal);
  const { sink } = await host.until('the sink given up', ({ sink }) => sink.lastFailure !== null);
  const ms = performance.now() - startMs;
  await host.until('another sink', (now) => now.sink.state === 'ready' && now.sink.pid !== pid);
  await host.stop();
  return { ms, message: sink.lastFailure!.message };
}

test('a driver that is stopped, whose loop stands still or whose sockets are dead is found in 14 to 16 s', async () => {
  const [stopped, wedged, deaf] = await Promise.all([
    found('SIGSTOP'),
    found('SIGUSR2', 'wedged'),
    found('SIGUSR2', 'deaf'),
  ]);

  for (const { ms } of [stopped, wedged, deaf]) {
    expect(ms).toBeGreaterThan(FOUND_MS.least);
    expect(ms).toBeLessThan(FOUND_MS.most);
  }
  const seconds = Object.entries({ stopped, wedged, deaf }).map(
    ([way, { ms }]) => `${way} in ${(ms / 1_000).toFixed(1)} s`,
  );
  figure('silent drivers found', seconds.join(', '));
  expect(stopped.message).toContain('missed 7 heartbeats');
  expect(wedged.message).toContain('missed 7 heartbeats');
  // One that runs finds out itself in 15 to 16 s.
  expect(deaf.message).toMatch(/missed 7 heartbeats|no heartbeat for 15 s/);
});

test('a host that was stopped for less than its drivers wait goes on with the same drivers', async () => {
  const { host, status } = await streamingHost();

  await stopped(host, 10_000);

  const { commits } = status.tables[0]!.totals;
  const now = await host.until('commits', ({ tables }) => tables[0]!.totals.commits > commits + 1);
  for (const role of ['source', 'sink'] as const) {
    expect(now[role]).toMatchObject({ pid: status[role].pid, restarts: 0, lastFailure: null });
  }
});

test('a host that was stopped for 20 s finds its drivers ended by themselves, and starts them again', async () => {
  const { host, status } = await streamingHost();

  await stopped(host, 20_000);

  const now = await host.until('new drivers', ({ source, sink, tables }) => {
    const both = source.state === 'ready' && source.restarts === 1 && sink.state === 'ready' && sink.restarts === 1;
    return both && tables[0]!.state === 'streaming';
  });
  for (const role of ['source', 'sink'] as const) {
    expect(now[role].pid).not.toBe(status[role].pid);
    expect(now[role].lastFailure?.message).toContain('no heartbeat for 15 s');
  }
});

async function stopped(host: HostProcess, ms: number): Promise<void> {
  process.kill(host.pid, 'SIGSTOP');
  const untilMs = performance.now() + ms;
  await waitFor('the end of the stop', ms + 5_000, async () => (performance.now() > untilMs ? true : null));
  process.kill(host.pid, 'SIGCONT');
}

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { figure } from '../../figures.ts';
import { SPELLINGS } from '../../unit/host/supervisor/spellings.ts';
import { hostCommand, startHost } from '../cli/host-command.ts';
import { testFolder, waitFor } from '../pipeline/host-process.ts';
import { canary, leaksIn, searchedInWords } from './canary.ts';

const DRIVERS = resolve(import.meta.dirname, '../../fixtures/drivers');
const SECRET = canary('the pin');
const SAYS = [
  SECRET,
  ...Object.values(SPELLINGS).map((spell) => spell(SECRET)),
  ...['', 'x', 'xx'].map((before) => Buffer.from(`${before}${SECRET}xx`).toString('base64')),
  Buffer.from(`user:${SECRET}`).toString('base64url'),
  `postgres://me:${encodeURIComponent(SECRET)}@db/shop`,
];

afterAll(() => figure('secrets, a driver that tells them', searchedInWords()));

test.each(['junk', 'dying'])(
  'a driver that tells its secret by %s is heard by nobody: not in log, status, control or error',
  async (when) => {
    const { file, args } = tellingPipeline(when);
    const host = startHost(['run', ...args, '--log-level', 'debug']);
    await host.until('starts are held back');
    const status = await hostCommand(['table', 'status', ...args, '--output', 'json', '--log-level', 'debug']);
    host.child.kill('SIGINT');
    const { stderr, stdout } = await host.ended;
    const validate = await hostCommand(['validate', ...args, '--connect', '--log-level', 'debug']);

    expect(JSON.parse(status.stdout).host.source.lastFailure.message).toContain('***');
    expect(validate.stdout).toContain('***');
    const told = {
      log: stdout + stderr,
      status: status.stdout + status.stderr,
      validate: validate.stdout + validate.stderr,
      ...filesIn(join(file, '../state')),
    };
    expect(leaksIn(told, [SECRET])).toEqual([]);
    expect(stderr).toMatch(/x\*\*\*… \[\d+ bytes cut\]/);
    expect(stderr).not.toMatch(/xp@ss/);
  },
);

test('a driver that tells its secret in logs, errors, answers and metrics is heard by nobody', async () => {
  const { file, args } = tellingPipeline('serving');
  const summary = join(file, '../summary.json');
  const options = ['--log-level', 'debug', '--log-format', 'json', '--summary', summary];
  const host = startHost(['run', ...args, ...options, ...METRICS]);
  await host.until('metrics are served');
  const address = /127\.0\.0\.1:\d+/.exec(host.written.stderr)![0];
  const get = async (path: string) => (await fetch(`http://${address}${path}`)).text();
  const pages = await waitFor(
    'paused tables and the metrics of the driver',
    60_000,
    async () => {
      const [status, metrics] = [await get('/statusz'), await get('/metrics')];
      const paused = (status.match(/"state":"paused"/g) ?? []).length;
      return paused === 2 && metrics.includes('urutau_driver_up{role="source",driver="tells-its-secrets"} 1')
        ? { status, metrics, ready: await get('/readyz') }
        : null;
    },
    () => host.written.stderr,
  );
  const tables = await hostCommand(['table', 'status', ...args]);
  host.child.kill('SIGINT');
  const { stdout, stderr } = await host.ended;
  const others = await Promise.all([
    hostCommand(['validate', ...args, '--connect', '--log-level', 'debug']),
    hostCommand(['validate', ...args, '--connect', '--output', 'json']),
    hostCommand(['teardown', ...args, '--log-level', 'debug']),
    hostCommand(['driver', 'info', 'tells-its-secrets']),
  ]);

  expect(others[0]!.stdout).toContain('***');
  expect(others[2]!.stdout).toContain('what belongs to ***');
  const told = {
    stdout,
    stderr,
    ...pages,
    tables: tables.stdout + tables.stderr,
    summary: readFileSync(summary, 'utf8'),
    ...Object.fromEntries(others.map((other, index) => [`command ${index}`, other.stdout + other.stderr])),
    ...filesIn(join(file, '../state')),
  };
  expect(leaksIn(told, [SECRET])).toEqual([]);
  for (const token of tokensIn(stderr)) expect(token).toBe('***');
});

const METRICS = ['--metrics-addr', '127.0.0.1:0'];

/** Both of its drivers tell; the source's secret is marked by its schema alone. */
function tellingPipeline(when: string): { file: string; args: string[] } {
  const folder = testFolder();
  const file = join(folder, 'pipeline.yaml');
  mkdirSync(join(folder, 'state'));
  const driver = (when: string) => ({
    driver: join(DRIVERS, 'tells-its-secrets'),
    config: { when, pin: SECRET, says: SAYS },
  });
  const pipeline = {
    pipeline: 'telling',
    source: driver(when),
    sink: driver('serving'),
    tables: ['plain', 'typed'].map((name) => ({ source: name, target: name, primaryKey: ['id'] })),
    supervision: {
      ready: '10s',
      stop: '2s',
      backoff: { first: '50ms', max: '50ms' },
      breaker: { failures: 2, hold: '1h' },
    },
  };
  writeFileSync(file, stringify(pipeline));
  return { file, args: ['-f', file, '--state-dir', join(folder, 'state')] };
}

function filesIn(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(files.map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]));
}

function tokensIn(log: string): string[] {
  return [...log.matchAll(/"URUTAU_TOKEN\\?":\\?"([^"\\]*)/g)].map(([, token]) => token!);
}

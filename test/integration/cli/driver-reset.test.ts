import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { HostProcess, readJson, testFolder, waitFor } from '../pipeline/host-process.ts';
import { hostCommand } from './host-command.ts';

const DRIVERS = resolve(import.meta.dirname, '../../fixtures/drivers');
const columns = { id: 'int64', name: 'utf8' };

test('a driver that dies thrice is held back, which status and metrics tell, and runs at once when it was mended and reset', async () => {
  const folder = testFolder();
  const program = brokenSource(folder);
  const log = join(folder, 'log.jsonl');
  const out = join(folder, 'out.json');
  writeFileSync(log, '{"table":"orders","op":"c","after":{"id":1,"name":"a"}}\n');
  const host = new HostProcess({
    folder,
    pipeline: {
      pipeline: 'mended',
      source: { driver: join(folder, 'driver'), config: { file: log, tables: { orders: { key: ['id'], columns } } } },
      sink: {
        driver: join(DRIVERS, 'plain-sink'),
        config: { file: out, tables: { orders: ['id'] } },
        flush: { interval: '50ms' },
      },
      tables: [{ source: 'orders', target: 'orders', primaryKey: ['id'] }],
      supervision: { backoff: { first: '50ms', max: '100ms' }, breaker: { hold: '1h' } },
    },
  }).start();

  const { source } = await host.until('an open breaker', (status) => status.source.breaker === 'open');
  expect(source).toMatchObject({ state: 'held', failuresByReason: { exit: 3 } });
  expect(source.failures).toHaveLength(3);
  for (const { message } of source.failures) expect(message).toContain('a part is missing');
  expect(source.nextStartAtMs! - Date.now()).toBeGreaterThan(50 * 60_000);
  const scrape = await host.scrape();
  expect(scrape).toContain('urutau_breaker_state{role="source",state="open"} 1');
  expect(scrape).toContain('urutau_driver_failures_total{role="source",reason="exit"} 3');
  const place = ['-f', host.file, '--state-dir', host.stateDir];
  const status = await hostCommand(['table', 'status', ...place]);
  expect(status.stderr).toMatch(/^the source driver is held until \d{4}-.*a part is missing/);

  mend(program);
  const reset = await hostCommand(['driver', 'reset', 'source', ...place]);

  expect(reset).toMatchObject({ code: 0, stdout: 'the source driver is starting, and its breaker is closed\n' });
  await waitFor(
    'the row',
    30_000,
    async () => (existsSync(out) && readJson<{ orders: unknown[] }>(out).orders[0]) || null,
  );
  await host.until('a ready source', ({ source }) => source.state === 'ready' && source.failures.length === 0);
  expect(await host.stop()).toBe(0);
});

test('without a host, and for a role that is none, reset says so', async () => {
  const folder = testFolder();
  const file = join(folder, 'p.yaml');
  writeFileSync(file, 'pipeline: p\nsource: {driver: ./d}\nsink: {type: stdout}\ntables: [{source: a, target: a}]\n');

  expect((await hostCommand(['driver', 'reset', 'source', '-f', file])).stderr).toContain('no host is running here');
  expect(await hostCommand(['driver', 'reset', 'middle', '-f', file])).toMatchObject({ code: 2 });
});

/** A driver's folder whose program lacks a part; the path of that program. */
function brokenSource(folder: string): string {
  const driver = join(folder, 'driver');
  mkdirSync(driver);
  copyFileSync(join(DRIVERS, 'plain-source/config.schema.json'), join(driver, 'config.schema.json'));
  writeFileSync(
    join(driver, 'plugin.yaml'),
    'name: mended\nversion: 1.0.0\nroles: [source]\ncommand: [node, start.mjs]\nprotocolVersions: [1]\n',
  );
  writeFileSync(join(driver, 'start.mjs'), "console.error('a part is missing');\nprocess.exit(1);\n");
  return join(driver, 'start.mjs');
}

function mend(program: string): void {
  writeFileSync(program, `import '${pathToFileURL(join(DRIVERS, 'plain-source/main.mjs'))}';\n`);
}

import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, readJson, testFolder, waitFor } from './host-process.ts';

const DRIVERS = resolve(import.meta.dirname, '../../fixtures/drivers');
const columns = { id: 'int64', name: 'utf8', price: 'float64', ok: 'bool', at: 'timestamp' };
const tables = [{ source: 'orders', target: 'orders', primaryKey: ['id'] }];

const line = (change: object) => `${JSON.stringify({ table: 'orders', ...change })}\n`;
const created = (id: number) => line({ op: 'c', after: { id, name: `n${id}`, price: 1.5, ok: true, at: null } });

function plainSource(folder: string) {
  const file = join(folder, 'log.jsonl');
  writeFileSync(file, Array.from({ length: 20 }, (_, i) => created(i + 1)).join(''));
  return {
    file,
    block: { driver: join(DRIVERS, 'plain-source'), config: { file, tables: { orders: { key: ['id'], columns } } } },
  };
}

test('a source and a sink that know the base alone work together, and go on where they were', async () => {
  const folder = testFolder();
  const { file, block } = plainSource(folder);
  const out = join(folder, 'out.json');
  const host = new HostProcess({
    folder,
    pipeline: {
      pipeline: 'plain',
      source: block,
      sink: {
        driver: join(DRIVERS, 'plain-sink'),
        config: { file: out, tables: { orders: ['id'] } },
        flush: { interval: '50ms' },
      },
      tables,
    },
    args: ['--source-plugin', join(DRIVERS, 'plain-source'), '--sink-plugin', join(DRIVERS, 'plain-sink')],
  });
  const keys = () =>
    existsSync(out)
      ? readJson<{ orders: { id: unknown }[] }>(out)
          .orders.map(({ id }) => Number(id))
          .sort((a, b) => a - b)
      : [];

  host.start();
  await waitFor(
    'the snapshot',
    30_000,
    async () => (keys().length === 20 ? true : null),
    () => host.output,
  );
  appendFileSync(file, line({ op: 'd', before: { id: 1 } }) + created(21));
  await waitFor(
    'the changes',
    30_000,
    async () => (keys().length === 20 && keys()[0] === 2 ? true : null),
    () => host.output,
  );
  expect(await host.stop()).toBe(0);

  appendFileSync(
    file,
    line({ op: 'u', before: { id: 2 }, after: { id: 2, name: 'two', price: null, ok: false, at: null } }),
  );
  expect(await host.start('--until-caught-up').exitCode(), host.output).toBe(0);
  expect(keys()).toEqual(Array.from({ length: 20 }, (_, i) => i + 2));
  expect(host.output).toContain('resume from its checkpoint');
}, 120_000);

test('a source of the base alone, named on the command line, fills a Postgres table and loses nothing to kills', async () => {
  const folder = testFolder();
  const { file, block } = plainSource(folder);
  const sink = await freshDatabase(inject('postgres18'), 'plain_dst');
  const host = new HostProcess({
    folder,
    pipeline: {
      pipeline: 'plain',
      source: block,
      sink: { type: 'postgres', uri: sink.uri, flush: { interval: '50ms' } },
      supervision: { backoff: { first: '50ms', max: '100ms' }, breaker: { failures: 1000 } },
      tables,
    },
    args: ['--source-plugin', join(DRIVERS, 'plain-source')],
  });

  host.start();
  for (let round = 0; round < 5; round++) {
    const { source } = await host.until(
      'streaming',
      ({ tables, source: { pid } }) => tables[0]!.state === 'streaming' && pid !== null,
    );
    appendFileSync(file, created(100 + round) + line({ op: 'd', before: { id: round + 1 } }));
    process.kill(source.pid!, 'SIGKILL');
    await host.until('noticing the death', (status) => status.source.pid !== source.pid);
  }
  await host.stop();
  expect(await host.start('--until-caught-up').exitCode(), host.output).toBe(0);

  const { rows } = await sink.client.query('select id::int from orders order by id');
  expect(rows.map(({ id }) => id)).toEqual([...Array.from({ length: 15 }, (_, i) => i + 6), 100, 101, 102, 103, 104]);
}, 120_000);

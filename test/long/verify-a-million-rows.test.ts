import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { figure } from '../figures.ts';
import { hostCommand, startHost } from '../integration/cli/host-command.ts';
import { testFolder } from '../integration/pipeline/host-process.ts';
import { freshDatabase } from '../services/databases.ts';

const ROWS = 1_000_000;
/** Of the command's own process: Node itself takes a third of it. */
const MEMORY_MAX = 300 * 1024 * 1024;

test('a million rows are compared in bounded time and memory, and so is an empty destination', async () => {
  const source = await freshDatabase(inject('postgres18'), 'verify_src');
  const copy = await freshDatabase(inject('postgres18'), 'verify_dst');
  await source.client.query(`
    create table orders (id bigint primary key, customer text, amount numeric(12,2), at timestamptz, note text, ok bool);
    insert into orders select n, 'customer ' || n % 1000, n * 1.01, now() + n * interval '1 s', repeat('x', n % 60), n % 3 = 0
      from generate_series(1, ${ROWS}) n`);
  const file = join(testFolder(), 'pipeline.yaml');
  writeFileSync(
    file,
    `pipeline: million
source: { kind: postgres, uri: '${source.uri}', slotName: ${source.name} }
sink: { type: postgres, uri: '${copy.uri}' }
tables: [{ source: public.orders, target: orders }]
`,
  );
  const host = startHost(['run', '-f', file]);
  await host.until('table is streaming table=public.orders');
  const verify = async () => {
    const { code, stdout, stderr } = await hostCommand(['verify', '-f', file, '--output', 'json']);
    const { seconds, peakMemoryBytes, tables } = JSON.parse(stdout);
    const rate = Math.round(ROWS / seconds).toLocaleString('en-US');
    const memory = `${Math.round(peakMemoryBytes / 1024 / 1024)} MiB`;
    figure('verify of a million rows', `${tables[0].result}: ${seconds} s (${rate} rows/s), ${memory}`);
    expect(peakMemoryBytes, stderr).toBeLessThan(MEMORY_MAX);
    return { code, ...tables[0] };
  };

  expect(await verify()).toMatchObject({ code: 0, comparison: { rows: { source: ROWS, destination: ROWS } } });

  await copy.client.query('delete from orders where id = 77; update orders set amount = 0 where id = 78');
  expect((await verify()).comparison.counts).toEqual({
    missing: 1,
    extra: 0,
    different: 1,
    duplicated: 0,
    unsettled: 0,
  });

  await copy.client.query('truncate orders');
  const { code, comparison } = await verify();
  expect(code).toBe(1);
  expect(comparison.counts.missing + comparison.left.rows.source).toBe(ROWS);
  expect(comparison.found).toHaveLength(10_000);
}, 1_800_000);

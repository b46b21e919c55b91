import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hostCommand, startHost } from './host-command.ts';
import { shop } from './shop.ts';

test('a running host pauses and resumes a table, refuses a second host and teardown, and drains on SIGINT', async () => {
  const { env, folder, pipelineFile } = await shop();
  const file = pipelineFile();
  const summary = join(folder, 'summary.json');
  const host = startHost(['run', '-f', file, '--summary', summary, '--metrics-addr', '127.0.0.1:0'], env);
  await host.until('table is streaming table=public.orders');
  await host.until('table is streaming table=public.items');

  const paused = await hostCommand(['table', 'pause', '-f', file, 'orders', '--output', 'json'], env);
  expect(paused.code).toBe(0);
  expect(JSON.parse(paused.stdout)).toMatchObject({ source: 'public.orders', state: 'paused', reason: { by: 'user' } });

  const status = await hostCommand(['table', 'status', '-f', file], env);
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(status.stdout).toMatch(/public\.orders {2}public\.orders {2}paused/);
  expect(status.stdout).toMatch(/public\.items {3}public\.items {3}streaming/);
  expect(status.stdout).toContain('remedy: urutau-host table resume public.orders');

  expect(await hostCommand(['table', 'resume', '-f', file, 'public.orders'], env)).toMatchObject({ code: 0 });

  const second = await hostCommand(['run', '-f', file], env);
  expect(second.code).toBe(2);
  expect(second.stderr).toContain(`a host of pipeline shop already runs (pid ${host.child.pid})`);

  const teardown = await hostCommand(['teardown', '-f', file, '--yes'], env);
  expect(teardown).toMatchObject({ code: 2, stdout: '' });
  expect(teardown.stderr).toContain('still runs');

  host.child.kill('SIGINT');
  expect((await host.ended).code).toBe(0);
  expect(JSON.parse(readFileSync(summary, 'utf8')).rows).toBe(1500);
});

test('a second signal ends the host at once with 130, though the destination holds a commit up', async () => {
  const { env, source, copy, pipelineFile } = await shop();
  const host = startHost(['run', '-f', pipelineFile()], env);
  await host.until('table is streaming table=public.orders');
  await copy.client.query('begin; lock table orders in access exclusive mode');
  await source.client.query("update orders set status = 'closed'");

  host.child.kill('SIGINT');
  await host.until('stopping');
  host.child.kill('SIGINT');

  expect((await host.ended).code).toBe(130);
});

import { expect, test } from 'vitest';
import { processesOf } from '../integration/supervision/driver-folder.ts';
import { said, stuckHost } from '../integration/supervision/stuck-host.ts';

/** The stop sequence with its default times, and two seconds more. */
const STOPPED_MS = { least: 29_000, most: 32_000 };

test('with the default times a host whose drivers ignore every request to end is stopped after 30 s', async () => {
  const { host, folders } = stuckHost({ source: { defiant: true }, sink: { defiant: true, stuckIn: 'commit' } });
  await said(host, 'stuck in commit');

  const startMs = performance.now();
  expect(await host.stop(), host.output.slice(-4000)).toBe(0);
  const ms = performance.now() - startMs;

  expect(ms).toBeGreaterThan(STOPPED_MS.least);
  expect(ms).toBeLessThan(STOPPED_MS.most);
  expect(processesOf(folders)).toEqual([]);
});

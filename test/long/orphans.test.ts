import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { figure } from '../figures.ts';
import { killHosts } from '../integration/supervision/kill-hosts.ts';
import { seeded } from '../oracle/random.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const AT_ONCE = 20;

test.runIf(process.platform === 'linux').each([
  ['with setpriv and the guard', 5, 'with'],
  ['with the guard alone', 5, 'without'],
] as const)(
  'of a hundred hosts that are killed twenty at a time nothing of any driver is left, %s',
  async (name, turns, setpriv) => {
    const random = seeded(SEED);
    const env: Record<string, string> = setpriv === 'with' ? {} : { PATH: pathWithout('setpriv') };
    let slowestMs = 0;
    for (let turn = 0; turn < turns; turn++) {
      const { had, goneMs } = await killHosts(AT_ONCE, random, env);
      expect(Math.max(...had), `seed ${SEED}, turn ${turn}`).toBe(6);
      slowestMs = Math.max(slowestMs, goneMs);
    }
    figure(
      `orphans, ${name}`,
      `none of ${turns * AT_ONCE} hosts that were killed; nothing left after ${Math.round(slowestMs)} ms`,
    );
  },
);

/** A PATH on which everything is found but one program. */
function pathWithout(program: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'path-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const base of ['/usr/bin', '/bin']) {
    for (const name of readdirSync(base)) {
      if (name !== program && !existsSync(join(folder, name))) symlinkSync(join(base, name), join(folder, name));
    }
  }
  return folder;
}

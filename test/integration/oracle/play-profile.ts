import { expect } from 'vitest';
import { figure } from '../../figures.ts';
import { play } from '../../oracle/play.ts';
import { PROFILES, type ProfileName } from '../../oracle/profiles.ts';
import { summary } from '../../oracle/summary.ts';
import { replicated, SEED } from './replicated.ts';

/** Plays a whole profile in databases of the test's own, and demands that nothing is wrong and every case was hit. */
export async function playProfile(file: string, name: ProfileName): Promise<void> {
  const { settleMs, ...profile } = PROFILES[name];
  const { run, host } = await replicated(file, { ...profile, demand: 'all' });

  const played = await play({ run, host, seed: SEED, runMs: profile.runMs, settleMs, withChaos: false });

  console.log(summary(run, played, { profile: name, seed: SEED, chaos: false }));
  expect(played.verdict.report, host.output.slice(-4_000)).toBe('');
  expect(played.verdict.ok).toBe(true);
  expect(await host.stop()).toBe(0);
  const { rows, committed } = played.verdict.counts;
  figure(`oracle, profile ${name}`, `${rows} rows in ${committed} transactions, every case hit, no difference`);
}

import { afterAll, expect, inject, test } from 'vitest';
import { eachPointOnce, nameOf } from '../../chaos/fault-cases.ts';
import { play } from '../../chaos/play.ts';
import { inPool } from '../../chaos/pool.ts';
import { figure } from '../../figures.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const ONLY = process.env['URUTAU_TEST_POINT'];

const cases = eachPointOnce().filter(({ point }) => ONLY === undefined || point === ONLY);
const servers = { source: inject('postgres18'), sink: inject('postgres18') };
const results = inPool(cases, 3, (fault) => play(fault, servers, SEED));

for (const [index, fault] of cases.entries()) {
  const result = results[index]!;
  result.catch(() => {}); // Its own test reports it, which may come later.
  test(`after ${nameOf(fault)} nothing is lost or doubled`, async () => {
    const { noticedMs, recoveredMs } = await result.catch((error: Error) => {
      throw new Error(`${error.message}\nagain: URUTAU_TEST_SEED=${SEED} URUTAU_TEST_POINT=${fault.point}`);
    });
    expect(noticedMs).toBeLessThanOrEqual(recoveredMs);
  }, 600_000);
}

afterAll(async () => {
  const played = await Promise.allSettled(results);
  const fine = played.filter(({ status }) => status === 'fulfilled').length;
  figure('fault points', `${fine} of ${cases.length} killed there without a loss`);
});

import { afterAll, expect, test } from 'vitest';
import { inPool } from '../../chaos/pool.ts';
import { diskFullUnavailable, nameOfServerCase, playServerFault, SERVER_CASES } from '../../chaos/server-faults.ts';
import { figure } from '../../figures.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const ONLY = process.env['URUTAU_TEST_SERVER_FAULT'];

const cases = SERVER_CASES.filter(({ side, fault }) => ONLY === undefined || `${side}:${fault}` === ONLY);
const playable = cases.filter(({ fault }) => fault !== 'disk-full' || diskFullUnavailable() === undefined);
const results = new Map(inPool(playable, 3, (fault) => playServerFault(fault, SEED)).map((r, i) => [playable[i], r]));

for (const fault of cases) {
  const result = results.get(fault);
  result?.catch(() => {}); // Its own test reports it, which may come later.
  test.skipIf(result === undefined)(
    `nothing is lost or doubled when ${nameOfServerCase(fault)}`,
    async () => {
      const { recoveredMs } = await result!.catch((error: Error) => {
        const again = `URUTAU_TEST_SEED=${SEED} URUTAU_TEST_SERVER_FAULT=${fault.side}:${fault.fault}`;
        throw new Error(`${error.message}\nagain: ${again}`);
      });
      expect(recoveredMs).toBeLessThan(90_000);
    },
    600_000,
  );
}

afterAll(async () => {
  const played = await Promise.allSettled(results.values());
  const fine = played.filter(({ status }) => status === 'fulfilled').length;
  figure('faults of servers', `${fine} of ${cases.length} survived without a loss`);
});

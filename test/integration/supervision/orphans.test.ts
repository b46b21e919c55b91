import { expect, test } from 'vitest';
import { figure } from '../../figures.ts';
import { seeded } from '../../oracle/random.ts';
import { killHosts } from './kill-hosts.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test.runIf(process.platform === 'linux')(
  'of twenty hosts that are killed nothing of any driver is left, though the drivers heed nothing',
  async () => {
    const { had, goneMs } = await killHosts(20, seeded(SEED));

    expect(Math.max(...had), `seed ${SEED}`).toBe(6);
    figure('orphans', `none of 20 hosts that were killed; the last process was gone after ${Math.round(goneMs)} ms`);
  },
);

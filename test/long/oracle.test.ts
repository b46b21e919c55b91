import { test } from 'vitest';
import { playProfile } from '../integration/oracle/play-profile.ts';
import { SEED } from '../integration/oracle/replicated.ts';

test(`ten minutes on a hundred thousand rows leave every row in the destination, once and as it is (seed ${SEED})`, async () => {
  await playProfile('test/long/oracle.test.ts', 'full-100k');
}, 5_400_000);

test(`half an hour on a million rows leaves every row in the destination, once and as it is (seed ${SEED})`, async () => {
  await playProfile('test/long/oracle.test.ts', 'full');
}, 7_200_000);

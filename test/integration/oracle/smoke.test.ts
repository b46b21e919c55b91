import { test } from 'vitest';
import { playProfile } from './play-profile.ts';
import { SEED } from './replicated.ts';

test(`three minutes of the smoke profile leave every row of the source in the destination, once and as it is (seed ${SEED})`, async () => {
  await playProfile('test/integration/oracle/smoke.test.ts', 'smoke');
}, 1_200_000);

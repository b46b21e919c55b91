import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffMs } from '../../../../host/supervisor/backoff.ts';

const POLICY = { firstMs: 1_000, maxMs: 60_000 };

test('the delay doubles from one second to sixty and stays there', () => {
  const delays = [1, 2, 3, 4, 5, 6, 7, 8, 2_000].map((attempt) => backoffMs(attempt, POLICY, 0.5));

  expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test('the jitter takes away or adds a quarter at most, whatever the attempt', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, random) => {
        const plainMs = backoffMs(attempt, POLICY, 0.5);
        const delayMs = backoffMs(attempt, POLICY, random);

        expect(delayMs).toBeGreaterThanOrEqual(plainMs * 0.75);
        expect(delayMs).toBeLessThanOrEqual(plainMs * 1.25);
      },
    ),
  );
});

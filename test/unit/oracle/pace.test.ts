import { expect, test } from 'vitest';
import { Pace } from '../../oracle/pace.ts';
import { PROFILES } from '../../oracle/profiles.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

function beats(seed: number, runMs: number) {
  const pace = new Pace({ seed, runMs });
  return Array.from({ length: runMs / 100 }, (_, step) => pace.at(step * 100));
}

test(`the same seed gives the same lulls, bursts and episodes (seed ${SEED})`, () => {
  expect(beats(SEED, 180_000)).toEqual(beats(SEED, 180_000));
  expect(beats(SEED + 1, 180_000)).not.toEqual(beats(SEED, 180_000));
});

test.each(Object.entries(PROFILES))(
  `%s has an episode of backlog of 10 to 40 s that is over before the end, whatever the seed (from seed ${SEED})`,
  (_, { runMs }) => {
    for (let seed = SEED; seed < SEED + 50; seed++) {
      const all = beats(seed, runMs);
      const from = all.findIndex(({ only }) => only === 'events');
      const length = all.slice(from).findIndex(({ only }) => only === null);
      expect(from, `seed ${seed}`).toBeGreaterThan(0);
      expect(length >= 99 && length <= 401, `${length / 10} s with seed ${seed}`).toBe(true);
    }
  },
);

test('two episodes of backlog never run into one', () => {
  // The exponential distribution puts almost nothing between the first two of this seed.
  const all = beats(1_390_248_576, PROFILES.full.runMs!);
  const from = all.findIndex(({ only }) => only === 'events');

  expect(all.slice(from).findIndex(({ only }) => only === null)).toBeLessThanOrEqual(401);
});

test(`factors lie between 0.05 and 8, their median is below 1, and the first seconds have no lull (seed ${SEED})`, () => {
  const factors = beats(SEED, 3_600_000).map(({ factor }) => factor);
  const sorted = [...factors].sort((a, b) => a - b);

  expect(sorted[0]).toBeGreaterThanOrEqual(0.05);
  expect(sorted.at(-1)).toBe(8);
  expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(1);
  expect(Math.min(...factors.slice(0, 100))).toBeGreaterThanOrEqual(1);
});

test(`work that begins in a lull goes on at the rate of what comes after it (seed ${SEED})`, () => {
  const rows = (pace: Pace, untilMs: number) => {
    let steps = 0;
    for (let ms = 0; ms < untilMs; ms = pace.after(ms, 100)) steps++;
    return steps;
  };
  const pace = new Pace({ seed: SEED, runMs: null });
  const once = new Pace({ seed: SEED, runMs: null });

  const steps = rows(pace, 600_000);

  expect(once.after(0, steps * 100) / 600_000).toBeCloseTo(1, 2);
  expect(steps, 'about one step of 100 ms each 100 ms').toBeGreaterThan(600_000 / 100 / 2);
  expect(steps).toBeLessThan((600_000 / 100) * 3);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dateText, timestampText, timeText } from '../../../../../drivers/stdout/sink/iso-time.ts';

const DAY_MS = 86_400_000;

test('every date that JavaScript knows is written as JavaScript writes it', () => {
  fc.assert(
    fc.property(fc.integer({ min: -100_000_000, max: 100_000_000 }), (days) => {
      expect(dateText(days)).toBe(new Date(days * DAY_MS).toISOString().split('T')[0]);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  [0, '1970-01-01'],
  [-1, '1969-12-31'],
  [-719_162, '0001-01-01'],
  [-719_528, '0000-01-01'],
  [-719_529, '-000001-12-31'],
  [2_932_896, '9999-12-31'],
  [2_932_897, '+010000-01-01'],
  [2 ** 31 - 1, '+5881580-07-11'],
  [-(2 ** 31), '-5877641-06-23'],
])('day %i is %s', (days, text) => {
  expect(dateText(days)).toBe(text);
});

test('the fraction of a timestamp is exact at each resolution, also beyond 2^53 units', () => {
  const resolutions = [
    [1n, 0],
    [1_000n, 3],
    [1_000_000n, 6],
    [1_000_000_000n, 9],
  ] as const;
  fc.assert(
    fc.property(
      fc.bigInt({ min: -8_000_000_000n, max: 9_000_000_000n }),
      fc.nat(999_999_999),
      fc.constantFrom(...resolutions),
      (seconds, fraction, [unitsPerSecond, digits]) => {
        const part = BigInt(fraction) % unitsPerSecond;
        const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
        const text = part === 0n ? '' : `.${String(part).padStart(digits, '0').replace(/0+$/, '')}`;

        expect(timestampText(seconds * unitsPerSecond + part, unitsPerSecond)).toBe(`${whole}${text}`);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('the last microsecond of a day belongs to that day, as late as numbers are exact', () => {
  for (const days of [0n, 1n, 20_000n, 104_249n, -104_249n]) {
    const midnight = days * 86_400_000_000n;

    expect(timestampText(midnight - 1n, 1_000_000n)).toBe(`${dateText(Number(days) - 1)}T23:59:59.999999`);
    expect(timestampText(midnight, 1_000_000n)).toBe(`${dateText(Number(days))}T00:00:00`);
  }
});

test.each([
  [0, '00:00:00'],
  [1, '00:00:00.000001'],
  [36_610_500_000, '10:10:10.5'],
  [86_399_999_999, '23:59:59.999999'],
  [86_400_000_000, '24:00:00'],
])('%i microseconds of a day are %s', (micros, text) => {
  expect(timeText(micros, 1_000_000)).toBe(text);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, formatSize, parseDuration, parseSize } from '../../../../host/spec/durations-and-sizes.ts';

const wholeNumber = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

test('a duration is a number with its unit', () => {
  expect(['250ms', '5s', '10m', '168h'].map(parseDuration)).toEqual([250, 5_000, 600_000, 604_800_000]);
});

test('a size is a number of bytes, plain or with a binary unit', () => {
  expect(['1', 4096, '64Mi', '1Gi', '2Ti', '512Ki'].map(parseSize)).toEqual([
    1,
    4096,
    2 ** 26,
    2 ** 30,
    2 ** 41,
    2 ** 19,
  ]);
});

test('what has no unit, a wrong one, a fraction or nothing in it is no duration', () => {
  for (const text of ['', '5', '5 s', '0s', '-1s', '1.5s', '1d', '5S', '05s', '1h30m', 'ms', '5s\n']) {
    expect([text, parseDuration(text)]).toEqual([text, undefined]);
  }
});

test('what has a wrong unit, a fraction or nothing in it is no size', () => {
  for (const text of [
    '',
    '0',
    '-1',
    '1.5Mi',
    '1MB',
    '1mi',
    '64 Mi',
    'Mi',
    '01Ki',
    '1e3',
    '1Ki\n',
    -1,
    1.5,
    Number.NaN,
  ]) {
    expect([text, parseSize(text)]).toEqual([text, undefined]);
  }
});

test('whatever is read is exact, and what would not be is refused', () => {
  const units = { Ki: 2n ** 10n, Mi: 2n ** 20n, Gi: 2n ** 30n, Ti: 2n ** 40n };
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 2n ** 60n }), fc.constantFrom('Ki', 'Mi', 'Gi', 'Ti'), (count, unit) => {
      const exact = count * units[unit];
      const parsed = parseSize(`${count}${unit}`);

      expect(parsed === undefined ? undefined : BigInt(parsed)).toBe(exact < 2n ** 53n ? exact : undefined);
    }),
  );
});

test('every duration is read back from its text', () => {
  fc.assert(
    fc.property(wholeNumber, (ms) => {
      expect(parseDuration(formatDuration(ms))).toBe(ms);
    }),
  );
});

test('every size is read back from its text', () => {
  fc.assert(
    fc.property(wholeNumber, (bytes) => {
      expect(parseSize(formatSize(bytes))).toBe(bytes);
    }),
  );
});

test('the text of a duration or size is the shortest exact one', () => {
  expect([90_000, 3_600_000, 1, 0].map(formatDuration)).toEqual(['90s', '1h', '1ms', '0ms']);
  expect([2 ** 26, 1000, 1536, 0].map(formatSize)).toEqual(['64Mi', '1000', '1536', '0']);
});

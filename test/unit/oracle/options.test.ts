import { expect, test } from 'vitest';
import { parseOptions, reproOf } from '../../oracle/options.ts';

const parsed = (...args: string[]) => parseOptions(args, () => 42);

test('without options it is the smoke profile with a fresh seed', () => {
  expect(parsed()).toEqual({ profile: 'smoke', seed: 42, chaos: false });
});

test('the command that is printed leads to the same options', () => {
  const options = { profile: 'full-100k', seed: 7, chaos: true } as const;
  const repro = reproOf(options);

  expect(repro).toBe('npm run oracle -- --profile full-100k --seed 7 --chaos');
  expect(parsed(...repro.split(' ').slice(4))).toEqual(options);
  expect(parsed('--profile=full-100k', '--seed=7', '--chaos')).toEqual(options);
  const short = { ...options, minutes: 5 };
  expect(parsed(...reproOf(short).split(' ').slice(4))).toEqual(short);
});

test.each([
  [['--profile', 'huge'], '--profile: expected one of smoke, full-100k, full; came huge'],
  [['--profile', 'toString'], '--profile: expected one of smoke, full-100k, full; came toString'],
  [['--profile'], '--profile: expected one of smoke, full-100k, full; came nothing'],
  [['--seed', '-1'], '--seed: expected a whole number below 2^32; came -1'],
  [['--seed', '4294967296'], '--seed: expected a whole number below 2^32; came 4294967296'],
  [['--minutes', '0'], '--minutes: expected a whole number from 1 to 9999; came 0'],
  [['--fast'], 'unknown option --fast'],
])('%j is refused in words', (args, problem) => {
  expect(parsed(...args)).toEqual({ problem });
});

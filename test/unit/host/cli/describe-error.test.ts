import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { describeError, exitCodeOf } from '../../../../host/cli/describe-error.ts';
import { SpecError } from '../../../../host/spec/problem.ts';

const failures = [
  { problem: 'wal_level is replica', remedy: 'Set it to logical.' },
  { problem: 'table a does not exist', remedy: 'Check the name.', table: 'a' },
];

test('several failures are all named, each with its remedy', () => {
  const text = describeError(new UrutauError('precondition-failed', 'both', { failures }), { stack: false });

  expect(text).toBe(
    'error: 2 things are in the way:\n' +
      '  - wal_level is replica\n    remedy: Set it to logical.\n' +
      '  - table a does not exist\n    remedy: Check the name.\n',
  );
});

test('one failure is a message and a remedy', () => {
  const text = describeError(new UrutauError('auth-failed', 'no such user', { remedy: 'Make it.' }), { stack: false });

  expect(text).toBe('error: no such user\n  remedy: Make it.\n');
});

test('a stack is shown with that of its cause, and only where it is asked for', () => {
  const error = new Error('outer', { cause: new TypeError('inner') });

  expect(describeError(error, { stack: false })).not.toContain('    at ');
  expect(describeError(error, { stack: true })).toMatch(
    /Error: outer\n {4}at [\s\S]*caused by TypeError: inner\n {4}at /,
  );
});

test.each([
  [new SpecError([]), 2],
  [new UrutauError('config-invalid', ''), 2],
  [new UrutauError('precondition-failed', ''), 2],
  [new UrutauError('auth-failed', ''), 2],
  [new UrutauError('source-unavailable', ''), 1],
  [new UrutauError('row-refused', ''), 1],
  [new Error(''), 1],
])('%s ends the program with %i', (error, code) => {
  expect(exitCodeOf(error)).toBe(code);
});

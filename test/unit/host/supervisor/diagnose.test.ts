import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { diagnose } from '../../../../host/supervisor/diagnose.ts';

const options = (stderr = '') => ({ driver: 'source driver orders', stderr, ranBefore: true });
const exited = (code: number | null, signal: NodeJS.Signals | null = null) =>
  ({ kind: 'exited', exit: { code, signal }, wasReady: true }) as const;

test('what went wrong is said however deep the stack under it is', () => {
  const frames = Array.from({ length: 20 }, (_, i) => `    at step${i} (file:///driver.js:${i}:1)`);
  const stderr = ['Error: no such host', ...frames, '', 'Node.js v20.20.2'].join('\n');

  const { error } = diagnose(exited(1), options(stderr));

  expect(error.message).toMatch(/it said: Error: no such host \| Node\.js v20\.20\.2$/);
  expect((error.cause as Error).message).toContain('at step19');
});

test('the native stack of a runtime that gives up does not hide why it did', () => {
  const frames = Array.from({ length: 12 }, (_, i) => `${String(i + 1).padStart(2)}: 0x10fb20${i}  [/usr/bin/node]`);
  const stderr = ['FATAL ERROR: Reached heap limit', '----- Native stack trace -----', ...frames].join('\n');

  const { error } = diagnose(exited(null, 'SIGABRT'), options(stderr));

  expect(error.message).toContain(
    'was ended by SIGABRT, which nobody asked for; it said: FATAL ERROR: Reached heap limit',
  );
  expect(error.remedy).toContain('more memory');
});

test('a stack without a word is shown as it is', () => {
  const { error } = diagnose(exited(1), options('    at one (a.js:1:1)\n    at two (a.js:2:1)\n'));

  expect(error.message).toMatch(/it said: {5}at one \(a\.js:1:1\) \| {5}at two \(a\.js:2:1\)$/);
});

test.each([
  [137, 'SIGKILL', 'out of memory'],
  [139, 'SIGSEGV', 'The driver crashed'],
  [143, 'SIGTERM', 'Someone else sent it this signal'],
])('exit code %i is told as the shell means it: %s', (code, signal, remedy) => {
  const { error } = diagnose(exited(code), options());

  expect(error.message).toContain(`exited with code ${code} (as a shell does whose command was ended by ${signal})`);
  expect(error.remedy).toContain(remedy);
});

test.each([1, 126, 127, 128, 255])('exit code %i is no signal', (code) => {
  expect(diagnose(exited(code), options()).error.message).toContain(`exited with code ${code}, which nobody asked for`);
});

test('a heartbeat that failed for a reason with a remedy of its own gives that remedy', () => {
  const dead = (cause: unknown) => diagnose({ kind: 'dead', misses: 7, cause }, options()).error.remedy;

  expect(dead(new UrutauError('internal', 'its socket was removed', { remedy: 'Find what removed it.' }))).toBe(
    'Find what removed it.',
  );
  expect(dead(new UrutauError('source-unavailable', 'no connection'))).toMatch(/^It hangs/);
  expect(dead(new Error('no answer within 1000 ms'))).toMatch(/^It hangs/);
});

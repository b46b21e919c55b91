import { expect, test } from 'vitest';
import { InFlightWindow } from '../../../../host/pipeline/in-flight.ts';

const never = new AbortController().signal;

test('a batch that does not fit waits until another is released', async () => {
  const window = new InFlightWindow({ bytesMax: 100, commitAll: () => {} });
  await window.reserve(80, never);

  let passed = false;
  const waiting = window.reserve(30, never).then(() => {
    passed = true;
  });
  await Promise.resolve();
  expect(passed).toBe(false);

  window.release(80);
  await waiting;
  expect(window.bytes).toBe(30);
});

test('a batch larger than the whole window passes alone', async () => {
  const window = new InFlightWindow({ bytesMax: 100, commitAll: () => {} });

  await window.reserve(500, never);

  expect(window.bytes).toBe(500);
});

test('whoever finds no room has every table commit what it holds', async () => {
  let asked = 0;
  const window = new InFlightWindow({
    bytesMax: 100,
    commitAll: () => {
      asked++;
      queueMicrotask(() => window.release(100));
    },
  });
  await window.reserve(100, never);

  await window.reserve(10, never);

  expect(asked).toBe(1);
  expect(window.bytes).toBe(10);
});

test('a wait for room ends when its table ends', async () => {
  const window = new InFlightWindow({ bytesMax: 100, commitAll: () => {} });
  await window.reserve(100, never);
  const ended = new AbortController();

  const waiting = window.reserve(10, ended.signal);
  ended.abort(new Error('the table ended'));

  await expect(waiting).rejects.toThrow('the table ended');
  expect(window.bytes).toBe(100);
});

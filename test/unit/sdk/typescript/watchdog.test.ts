import { LIMIT } from '@urutau/contract';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Watchdog } from '../../../../sdk/typescript/watchdog.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('silence of the host is noticed after 15 s and within one more', () => {
  const silent = vi.fn();
  const watchdog = new Watchdog({ now: () => Date.now(), silent });

  vi.advanceTimersByTime(LIMIT.watchdogMs);
  expect(silent).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(silent).toHaveBeenCalled();

  watchdog.stop();
});

test('each heartbeat begins the time anew', () => {
  const silent = vi.fn();
  const watchdog = new Watchdog({ now: () => Date.now(), silent });

  for (let beat = 0; beat < 100; beat++) {
    vi.advanceTimersByTime(LIMIT.heartbeatEveryMs);
    watchdog.heard();
  }
  expect(silent).not.toHaveBeenCalled();

  watchdog.stop();
  vi.advanceTimersByTime(10 * LIMIT.watchdogMs);
  expect(silent).not.toHaveBeenCalled();
});

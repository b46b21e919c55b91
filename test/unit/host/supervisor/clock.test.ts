import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../../host/supervisor/clock.ts';

const DAY_MS = 86_400_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([1, 25, 400])('a timer of %i days runs once, and then', (days) => {
  const ran = vi.fn();
  systemClock.after(days * DAY_MS, ran);

  vi.advanceTimersByTime(days * DAY_MS - 1);
  expect(ran).toHaveBeenCalledTimes(0);
  vi.advanceTimersByTime(1);
  expect(ran).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a timer of a year that was called off after a month never runs', () => {
  const ran = vi.fn();
  const cancel = systemClock.after(365 * DAY_MS, ran);
  vi.advanceTimersByTime(30 * DAY_MS);

  cancel();

  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(400 * DAY_MS);
  expect(ran).not.toHaveBeenCalled();
});

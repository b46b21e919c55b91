import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  afterFailure,
  afterHold,
  afterRunningWell,
  type Breaker,
  CLOSED,
} from '../../../../host/supervisor/breaker.ts';

const MINUTE = 60_000;
const POLICY = { failures: 3, windowMs: 5 * MINUTE, holdMs: MINUTE, holdMsMax: 10 * MINUTE };
const failedAt = (...timesMs: number[]) =>
  timesMs.reduce<Breaker>((breaker, nowMs) => afterFailure(breaker, nowMs, POLICY), CLOSED);

test('it opens at the third failure within five minutes, the last moment of them included', () => {
  expect(failedAt(0, 1)).toEqual({ kind: 'closed', failedAtMs: [0, 1] });
  expect(failedAt(0, 1, 5 * MINUTE)).toEqual({ kind: 'open', holdMs: MINUTE });
});

test('a failure older than five minutes no longer counts', () => {
  expect(failedAt(0, 1, 5 * MINUTE + 1)).toEqual({ kind: 'closed', failedAtMs: [1, 5 * MINUTE + 1] });
});

test('each failed half-open start holds twice as long, up to ten minutes', () => {
  let breaker = failedAt(0, 1, 2);
  const holds: number[] = [];
  for (let round = 0; round < 7; round++) {
    if (breaker.kind === 'open') holds.push(breaker.holdMs / MINUTE);
    breaker = afterFailure(afterHold(breaker), 0, POLICY);
  }

  expect(holds).toEqual([1, 2, 4, 8, 10, 10, 10]);
});

test('a half-open breaker closes, with nothing held against it, only when the driver has run well', () => {
  const halfOpen = afterHold(failedAt(0, 1, 2));

  expect(halfOpen).toEqual({ kind: 'half-open', holdMs: MINUTE });
  expect(afterRunningWell(halfOpen)).toEqual(CLOSED);
});

test('running well does not forget failures that are within the window', () => {
  expect(afterRunningWell(failedAt(0, 1))).toEqual(failedAt(0, 1));
});

test('it is open exactly when three failures lie within some five minutes', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4 * MINUTE }), { maxLength: 20 }), (gapsMs) => {
      let nowMs = 0;
      const timesMs: number[] = [];
      let breaker: Breaker = CLOSED;
      for (const gapMs of gapsMs) {
        nowMs += gapMs;
        timesMs.push(nowMs);
        breaker = afterFailure(breaker, nowMs, POLICY);
      }

      const crowded = timesMs.some((atMs, index) => index >= 2 && atMs - timesMs[index - 2]! <= POLICY.windowMs);
      expect(breaker.kind).toBe(crowded ? 'open' : 'closed');
    }),
  );
});

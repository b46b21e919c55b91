import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { type HeartbeatVerdict, watchHeartbeat } from '../../../../host/supervisor/heartbeat.ts';
import { FakeClock } from './fake-clock.ts';

const SILENCE = () => new Promise<void>(() => {});

function watched(beat: (count: number) => Promise<void>) {
  const clock = new FakeClock();
  const ended = new AbortController();
  const askedAtMs: number[] = [];
  let verdict: HeartbeatVerdict | null = null;
  const watching = watchHeartbeat({
    beat: () => {
      askedAtMs.push(clock.nowMs());
      return beat(askedAtMs.length);
    },
    everyMs: 2_000,
    answerMs: 1_000,
    misses: 7,
    clock,
    signal: ended.signal,
  }).then((found) => {
    verdict = found;
  });
  return { clock, ended, askedAtMs, watching, verdict: () => verdict };
}

test('a driver is asked every two seconds, and an answer in time keeps it alive', async () => {
  const { clock, ended, askedAtMs, watching, verdict } = watched(async () => {});

  await clock.advance(10_000);
  ended.abort();
  await watching;

  expect(askedAtMs).toEqual([0, 2_000, 4_000, 6_000, 8_000, 10_000]);
  expect(verdict()).toEqual({ kind: 'stopped' });
});

test('a driver that answers no more is dead at the seventh miss', async () => {
  const { clock, askedAtMs, verdict } = watched(SILENCE);

  await clock.advance(12_999);
  expect(verdict()).toBeNull();
  await clock.advance(1);

  expect(verdict()).toMatchObject({ kind: 'dead', misses: 7, cause: { message: 'no answer within 1000 ms' } });
  expect(askedAtMs).toEqual([0, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000]);
});

test('six misses and an answer begin the count again', async () => {
  const { clock, ended, verdict } = watched((count) => (count % 7 === 0 ? Promise.resolve() : SILENCE()));

  await clock.advance(120_000);

  expect(verdict()).toBeNull();
  ended.abort();
});

test('a refused call counts as a miss', async () => {
  const { clock, verdict } = watched(() => Promise.reject(new Error('UNAVAILABLE')));

  await clock.advance(12_000);

  expect(verdict()).toMatchObject({ kind: 'dead', misses: 7, cause: { message: 'UNAVAILABLE' } });
});

test.each([
  new UrutauError('auth-failed', 'wrong token'),
  Object.assign(new Error('16 UNAUTHENTICATED'), { code: 16 }),
])('a driver that refuses the token is dead at once: %s', async (error) => {
  const { clock, verdict } = watched(() => Promise.reject(error));

  await clock.advance(0);

  expect(verdict()).toEqual({ kind: 'unauthenticated', cause: error });
});

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

test('a driver that answers no more is dead when the period of the seventh miss is over', async () => {
  const { clock, askedAtMs, verdict } = watched(SILENCE);

  await clock.advance(13_999);
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

test('a socket that refuses is found as late as one that is silent', async () => {
  const { clock, verdict } = watched(() => Promise.reject(new Error('UNAVAILABLE')));

  await clock.advance(13_999);
  expect(verdict()).toBeNull();
  await clock.advance(1);

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

test('a driver that is merely idle lives: an hour in which nothing happens but heartbeats', async () => {
  const { clock, ended, askedAtMs, verdict } = watched(async () => {});

  await clock.advance(3_600_000);

  expect(verdict()).toBeNull();
  expect(askedAtMs).toHaveLength(1_801);
  ended.abort();
});

test('a host that was stopped takes no driver for dead when it goes on, however often', async () => {
  // The answer came while the host was stopped, and is read after the timers that came due meanwhile.
  const { clock, ended, verdict } = watched(() => new Promise((read) => clock.after(500, () => clock.after(0, read))));

  for (let stop = 0; stop < 20; stop++) {
    await clock.advance(100); // Into the middle of a question.
    clock.jump(20_000);
  }
  await clock.advance(100_000);

  expect(verdict()).toBeNull();
  ended.abort();
});

test('a driver that fell silent before its host was stopped is found after it goes on', async () => {
  const { clock, verdict } = watched(SILENCE);

  await clock.advance(6_500);
  clock.jump(3_600_000);
  await clock.advance(0);
  expect(verdict()).toBeNull();
  await clock.advance(8_000);

  expect(verdict()).toMatchObject({ kind: 'dead', misses: 7 });
});

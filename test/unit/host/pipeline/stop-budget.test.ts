import { expect, test } from 'vitest';
import { doneWithin, StopBudget } from '../../../../host/pipeline/stop-budget.ts';
import { FakeClock } from '../supervisor/fake-clock.ts';

test('the time of a stop runs from when it is asked for', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const budget = new StopBudget(stop.signal, 15_000, clock);
  let spent = false;
  void budget.spent.then(() => {
    spent = true;
  });

  await clock.advance(60_000);
  expect(budget.leftMs).toBe(15_000);
  stop.abort();
  await clock.advance(6_000);
  expect(budget.leftMs).toBe(9_000);
  await clock.advance(8_999);
  expect(spent).toBe(false);
  await clock.advance(2);

  expect(spent).toBe(true);
  expect(budget.leftMs).toBe(0);
});

test('a stop that was asked for before the start counts from the start', async () => {
  const clock = new FakeClock();
  const budget = new StopBudget(AbortSignal.abort(), 1_000, clock);

  await clock.advance(400);

  expect(budget.leftMs).toBe(600);
});

test('work that is not done in time is told from work that is', async () => {
  const clock = new FakeClock();

  const endless = doneWithin(new Promise(() => {}), 1_000, clock);
  const short = doneWithin(Promise.resolve(), 1_000, clock);
  await clock.advance(1_000);

  expect([await endless, await short]).toEqual([false, true]);
});

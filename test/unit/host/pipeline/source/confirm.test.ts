import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Confirmer } from '../../../../../host/pipeline/source/confirm.ts';
import { RecordingLog } from '../../supervisor/recording-log.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A source that keeps what it is told, and takes it when the test says so. */
function confirmerOf(answer: (call: number) => Promise<void> = async () => {}) {
  const told: Record<string, string>[] = [];
  const confirmer = new Confirmer((tables) => answer(told.push(tables)), new RecordingLog());
  return { confirmer, told };
}

test('the newest offset of each table is told once for all that came within a moment', async () => {
  const { confirmer, told } = confirmerOf();

  confirmer.durable('orders', 'a');
  confirmer.durable('orders', 'b');
  confirmer.durable('items', 'c');
  await vi.runAllTimersAsync();

  expect(told).toEqual([{ orders: 'b', items: 'c' }]);
});

test('an offset that becomes durable while a call is under way is told after it, without waiting for the next', async () => {
  let answer: () => void = () => {};
  const { confirmer, told } = confirmerOf((call) =>
    call > 1 ? Promise.resolve() : new Promise((resolve) => (answer = resolve)),
  );

  confirmer.durable('orders', 'a');
  await vi.runAllTimersAsync();
  confirmer.durable('orders', 'b');
  answer();
  await vi.runAllTimersAsync();

  expect(told).toEqual([{ orders: 'a' }, { orders: 'b' }]);
});

test('what the source did not take is told again by itself, and never instead of something newer', async () => {
  const { confirmer, told } = confirmerOf((call) =>
    call === 1 ? Promise.reject(new Error('busy')) : Promise.resolve(),
  );

  confirmer.durable('orders', 'a');
  confirmer.durable('items', 'b');
  await vi.advanceTimersByTimeAsync(300);
  confirmer.durable('orders', 'c');
  await vi.runAllTimersAsync();

  expect(told).toEqual([
    { orders: 'a', items: 'b' },
    { orders: 'c', items: 'b' },
  ]);
});

test('flush tells what is left, and leaves no timer behind', async () => {
  const { confirmer, told } = confirmerOf();

  confirmer.durable('orders', 'a');
  await confirmer.flush();
  confirmer.durable('orders', 'b');

  expect([told, vi.getTimerCount()]).toEqual([[{ orders: 'a' }], 0]);
});

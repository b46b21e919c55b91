import { expect, test } from 'vitest';
import { type AwaitedPosition, awaitPosition } from '../../../../host/verify/await-position.ts';

/** Offsets are numbers as text; the destination shows one after the other, and time passes only in pauses. */
function awaited(shown: readonly (string | null)[], changes: Partial<AwaitedPosition> = {}): AwaitedPosition {
  let at = 0;
  let nowMs = 0;
  return {
    table: 'public.t',
    offset: '10',
    stored: async () => shown[Math.min(at++, shown.length - 1)]!,
    compare: async (a, b) => Math.sign(Number(a) - Number(b)) as -1 | 0 | 1,
    hurry: async () => true,
    stillMs: 1_000,
    nowMs: () => nowMs,
    pause: async (ms) => {
      nowMs += ms;
    },
    ...changes,
  };
}

test('the wait ends when the position covers the offset, however long it takes to get there', async () => {
  const slow = Array.from({ length: 100 }, (_, n) => String(n / 10));

  await awaitPosition(awaited([...slow, '10']));
  await awaitPosition(awaited(['11']));
});

test('a position that stands still ends the wait, with what to do', async () => {
  await expect(awaitPosition(awaited(['1', '2']))).rejects.toMatchObject({
    message: expect.stringContaining('has not moved for 1 s, though a host carries it'),
    remedy: expect.stringContaining('--timeout'),
  });
  await expect(awaitPosition(awaited(['1'], { hurry: async () => false }))).rejects.toMatchObject({
    message: expect.stringContaining('no host answers in the state folder'),
    remedy: expect.stringContaining('urutau-host run'),
  });
});

test('an offset that cannot be compared is not covered', async () => {
  await expect(awaitPosition(awaited(['12'], { compare: async () => null }))).rejects.toThrow('has not moved');
});

test('what is known to be in the way ends the wait at once', async () => {
  const hurry = () => Promise.reject(new Error('public.t is paused'));

  await expect(awaitPosition(awaited(['1'], { hurry }))).rejects.toThrow('public.t is paused');
});

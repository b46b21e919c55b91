import { UrutauError } from '@urutau/contract';
import type { Shell } from './shell.ts';

/** Runs a short command with a signal that a person's interrupt aborts; drivers that it started are ended in order. */
export async function interruptible<T>(shell: Shell, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const off = shell.onInterrupt(() =>
    interrupt.abort(new UrutauError('internal', 'interrupted', { remedy: 'Nothing: this was asked for.' })),
  );
  try {
    return await work(interrupt.signal);
  } finally {
    off();
  }
}

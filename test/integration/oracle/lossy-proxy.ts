import { onTestFinished } from 'vitest';
import { startProxy } from '../../chaos/proxy.ts';

/** Cuts a connection instead of passing the question or the answer of a COMMIT on. */
export interface LossyProxy {
  readonly port: number;
  /** Connections that were cut before the server heard of the COMMIT, and after it had committed. */
  readonly cuts: { before: number; after: number };
}

/** Between a client and a Postgres. `cut` is asked at each COMMIT and at each answer to one. */
export async function lossyProxy(
  target: { host: string; port: number },
  cut: (when: 'before' | 'after') => boolean,
): Promise<LossyProxy> {
  const cuts = { before: 0, after: 0 };
  const { port, close } = await startProxy(target, (chunk, from) => {
    // A simple query, and the tag of its completion.
    const [when, mark] = from === 'client' ? (['before', 'commit\0'] as const) : (['after', 'COMMIT\0'] as const);
    if (!chunk.includes(mark) || !cut(when)) return false;
    cuts[when]++;
    return true;
  });
  onTestFinished(close);
  return { port, cuts };
}

/** Time as an argument, so that a test can move it. */
export interface Clock {
  /** Milliseconds that only ever grow; good for differences, without meaning as a date. */
  nowMs(): number;
  /** Milliseconds since 1970, for people. */
  wallMs(): number;
  /** Calls `run` once after `ms`; the function returned calls it off. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Waits `ms`, or less when `signal` aborts; never rejects and leaves no timer behind. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<'over' | 'aborted'> {
  if (signal.aborted) return Promise.resolve('aborted');
  return new Promise((resolve) => {
    const onAbort = () => {
      cancel();
      resolve('aborted');
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve('over');
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

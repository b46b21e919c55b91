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
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number) => {
      const stepMs = Math.min(leftMs, TIMER_MS_MAX);
      timer = setTimeout(leftMs > stepMs ? () => wait(leftMs - stepMs) : run, stepMs);
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

/** A timer of Node that is set for longer, some 25 days, runs at once: a breaker that is held for a year would not hold. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

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

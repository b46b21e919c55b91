import { type Clock, pause } from '../supervisor/clock.ts';

/**
 * The time that the last commits and the shutdown of the drivers have together, once a stop is asked for. A stop that
 * gave each of them as long would outlast whoever waits for it.
 */
export class StopBudget {
  /** Resolves when nothing is left; never where no stop is asked for. */
  readonly spent: Promise<void>;
  readonly #stopMs: number;
  readonly #clock: Clock;
  #askedAtMs: number | null = null;

  constructor(stop: AbortSignal, stopMs: number, clock: Clock) {
    this.#stopMs = stopMs;
    this.#clock = clock;
    this.spent = new Promise((resolve) => {
      const begin = () => {
        this.#askedAtMs = clock.nowMs();
        clock.after(stopMs, resolve);
      };
      if (stop.aborted) begin();
      else stop.addEventListener('abort', begin, { once: true });
    });
  }

  /** All of it until a stop is asked for. */
  get leftMs(): number {
    if (this.#askedAtMs === null) return this.#stopMs;
    return Math.max(0, this.#stopMs - (this.#clock.nowMs() - this.#askedAtMs));
  }
}

/** True when `work` is done, false when it is not within `ms`. */
export async function doneWithin(work: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(clock, ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}

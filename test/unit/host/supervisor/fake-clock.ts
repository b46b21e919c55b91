import type { Clock } from '../../../../host/supervisor/clock.ts';

/** A clock that stands still until it is moved. */
export class FakeClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; run: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Time passes while nothing runs, as when the process is stopped: what is due by then runs late. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs what is due on the way, in order, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      await settled();
      const [due] = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
    }
    this.#nowMs = untilMs;
  }
}

/** Promise callbacks run before an immediate does. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

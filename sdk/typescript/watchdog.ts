import { LIMIT } from '@urutau/contract';

/** DOG-2: ends the process when the host has been silent for 15 s. `heard` is called by every heartbeat. */
export class Watchdog {
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #heardAt: number;

  constructor({ now, silent }: { now: () => number; silent: () => void }) {
    this.#now = now;
    this.#heardAt = now();
    this.#timer = setInterval(() => {
      if (this.#now() - this.#heardAt > LIMIT.watchdogMs) silent();
    }, 1000);
    this.#timer.unref();
  }

  heard(): void {
    this.#heardAt = this.#now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/**
 * Bounds the bytes that left the source and are not yet durable in the destination, over all tables. A sink may wait
 * for more rows behind a full window, so whoever finds no room has every table commit what it holds.
 */
export class InFlightWindow {
  readonly #bytesMax: number;
  readonly #commitAll: () => void;
  #bytes = 0;
  #waiting: (() => void)[] = [];

  constructor({ bytesMax, commitAll }: { bytesMax: number; commitAll: () => void }) {
    this.#bytesMax = bytesMax;
    this.#commitAll = commitAll;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Waits until the bytes fit. A batch larger than the whole window passes alone, or it would wait for ever. */
  async reserve(bytes: number, signal: AbortSignal): Promise<void> {
    while (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) {
      signal.throwIfAborted();
      this.#commitAll();
      await this.#change(signal);
    }
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.push(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}

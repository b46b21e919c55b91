/** Hands batches from a connection that pushes to a stream that pulls: the connection is held while enough wait. */
export class BatchPipe<T> {
  readonly #waitingMax: number;
  readonly #flow: { hold(): void; release(): void };
  readonly #items: T[] = [];
  #wake: (() => void) | null = null;
  #end: { error: unknown } | null = null;

  constructor({ waitingMax, flow }: { waitingMax: number; flow: { hold(): void; release(): void } }) {
    this.#waitingMax = waitingMax;
    this.#flow = flow;
  }

  push(item: T): void {
    this.#items.push(item);
    if (this.#items.length >= this.#waitingMax) this.#flow.hold();
    this.#wake?.();
  }

  /** Nothing more comes; with an error, the iteration throws it behind what is there. */
  end(error: unknown = null): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        if (this.#items.length < this.#waitingMax) this.#flow.release();
        yield item;
      } else if (this.#end) {
        if (this.#end.error !== null) throw this.#end.error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = null;
      }
    }
  }
}

import type { TableShape } from '@urutau/contract';
import type { Batch } from '../batch.ts';
import type { ChangesFeed } from '../source/port.ts';

/** Pulls a feed one batch at a time, and can look whether one is there without waiting for it. */
export class FeedCursor {
  readonly #feed: ChangesFeed;
  #pending: Promise<Batch | null> | null = null;
  constructor(feed: ChangesFeed) {
    this.#feed = feed;
  }

  get shape(): TableShape {
    return this.#feed.shape;
  }

  get stream(): string | null {
    return this.#feed.stream;
  }

  async next(): Promise<Batch | null> {
    const batch = await this.#pull();
    this.#pending = null;
    return batch;
  }

  /** The next batch if it comes within `waitMs`; otherwise undefined, and it is kept for the next call. */
  async nextWithin(waitMs: number): Promise<Batch | null | undefined> {
    const pending = this.#pull();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), waitMs);
    });
    const first = await Promise.race([pending.then(() => 'here' as const), late]).finally(() => clearTimeout(timer));
    return first === 'late' ? undefined : this.next();
  }

  close(): void {
    this.#feed.close();
  }

  #pull(): Promise<Batch | null> {
    if (this.#pending === null) {
      this.#pending = this.#feed.next();
      this.#pending.catch(() => {}); // Told to whoever takes it.
    }
    return this.#pending;
  }
}

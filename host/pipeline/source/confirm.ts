import type { Log } from '../../observe/log.ts';

const PAUSE_MS = 200;

/**
 * Tells the source which offsets are durable (CNF-1), newest per table, one call at a time. A call that fails is made
 * again with the next offsets: what is not confirmed is only kept longer.
 */
export class Confirmer {
  readonly #confirm: (tables: Record<string, string>) => Promise<void>;
  readonly #log: Log;
  #pending = new Map<string, string>();
  #running: Promise<void> | null = null;
  #pause: NodeJS.Timeout | null = null;

  constructor(confirm: (tables: Record<string, string>) => Promise<void>, log: Log) {
    this.#confirm = confirm;
    this.#log = log;
  }

  durable(table: string, offset: string): void {
    this.#pending.set(table, offset);
    if (this.#running === null && this.#pause === null) {
      this.#pause = setTimeout(() => {
        this.#pause = null;
        this.#running ??= this.#send();
      }, PAUSE_MS);
    }
  }

  /** Sends what is left and waits for the answer; never throws. */
  async flush(): Promise<void> {
    if (this.#pause) clearTimeout(this.#pause);
    this.#pause = null;
    await this.#running;
    await this.#send();
  }

  /** Forgets what was not sent. */
  close(): void {
    if (this.#pause) clearTimeout(this.#pause);
    this.#pause = null;
    this.#pending.clear();
  }

  async #send(): Promise<void> {
    const tables = Object.fromEntries(this.#pending);
    if (this.#pending.size === 0) return;
    this.#pending = new Map();
    try {
      await this.#confirm(tables);
    } catch (error) {
      this.#log.debug('the source did not take a confirmation; it is sent again later', { error: String(error) });
      for (const [table, offset] of Object.entries(tables)) {
        if (!this.#pending.has(table)) this.#pending.set(table, offset);
      }
    } finally {
      this.#running = null;
    }
  }
}

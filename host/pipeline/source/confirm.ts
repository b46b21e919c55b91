import { faultPoint } from '../../fault-point.ts';
import type { Log } from '../../observe/log.ts';

const PAUSE_MS = 200;
const AFTER_FAILURE_MS = 5_000;

/**
 * Tells the source which offsets are durable (CNF-1), newest per table, one call at a time. A call that fails is made
 * again with the next offsets: what is not confirmed is only kept longer.
 */
export class Confirmer {
  readonly #confirm: (tables: Record<string, string>) => Promise<void>;
  readonly #log: Log;
  #pending = new Map<string, string>();
  #running: Promise<boolean> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(confirm: (tables: Record<string, string>) => Promise<void>, log: Log) {
    this.#confirm = confirm;
    this.#log = log;
  }

  durable(table: string, offset: string): void {
    this.#pending.set(table, offset);
    this.#sendIn(PAUSE_MS);
  }

  /** Sends what is left and waits for the answer; never throws. Nothing is sent afterwards. */
  async flush(): Promise<void> {
    this.close();
    await this.#running;
    await this.#send();
  }

  /** Sends nothing any more. */
  close(): void {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
  }

  #sendIn(ms: number): void {
    if (this.#closed || this.#timer || this.#running || this.#pending.size === 0) return;
    this.#timer = setTimeout(async () => {
      this.#timer = null;
      this.#running = this.#send();
      const taken = await this.#running;
      this.#running = null;
      this.#sendIn(taken ? PAUSE_MS : AFTER_FAILURE_MS);
    }, ms);
  }

  /** False when the source did not take it; then it is pending again, where nothing newer is. */
  async #send(): Promise<boolean> {
    if (this.#pending.size === 0) return true;
    const sent = this.#pending;
    this.#pending = new Map();
    try {
      faultPoint('host.confirm.asked');
      await this.#confirm(Object.fromEntries(sent));
      faultPoint('host.confirm.answered');
      return true;
    } catch (error) {
      this.#log.debug('the source did not take a confirmation; it is sent again later', { error: String(error) });
      this.#pending = new Map([...sent, ...this.#pending]);
      return false;
    }
  }
}

import type { Log } from '@urutau/sdk';
import { asPgError } from '../connection.ts';
import { parseLsn } from '../lsn.ts';
import type { Query } from './catalog.ts';
import type { Clock } from './clock.ts';

export interface HeartbeatOptions {
  query: Query;
  clock: Clock;
  log: Log;
  everyMs: number;
  /** How far the log has been decoded; null while nothing is read. */
  decoded(): bigint | null;
}

/**
 * Moves the reader on where the log grows but nothing of it is for this database: other databases share it, and a slot
 * that stands still would pin all of it. Writes nothing while the log itself stands still.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #stop: (() => void) | null = null;
  #last: bigint | null = null;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.stop();
    this.#stop = this.#options.clock.every(this.#options.everyMs, () => void this.#beat());
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
    this.#last = null;
  }

  async #beat(): Promise<void> {
    const { query, log } = this.#options;
    const decoded = this.#options.decoded();
    const stoodStill = decoded !== null && decoded === this.#last;
    this.#last = decoded;
    if (!stoodStill) return;
    try {
      const [row] = await query('SELECT pg_current_wal_insert_lsn()');
      if (parseLsn(row![0]!) > decoded) await emitMarker(query, log);
    } catch (error) {
      log.warn('the heartbeat could not reach the server', { error: asPgError(error, 'source').message });
    }
  }
}

/** Writes a small transaction into the log. Without the right to do so the reader is moved by keepalives alone. */
export async function emitMarker(query: Query, log: Log): Promise<void> {
  try {
    await query("SELECT pg_logical_emit_message(true, 'urutau', '')");
  } catch (error) {
    const { code, message } = asPgError(error, 'source');
    if (code !== 'precondition-failed') throw error;
    log.debug('the user may not write messages to the log', { error: message });
  }
}

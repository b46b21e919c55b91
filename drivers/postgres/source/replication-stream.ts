import pg from 'pg';
import { quoteIdent } from '../connection.ts';
import { formatLsn, type Lsn } from '../lsn.ts';
import type { Clock } from './clock.ts';
import { Wire } from './wire.ts';

export interface ReplicationHandler {
  /** One pgoutput message: `start` to `end` in `buffer`, valid in the call only. */
  message(buffer: Uint8Array, start: number, end: number): void;
  /** The server has sent all changes that committed before `walEnd`, unless one is being sent. */
  keepalive(walEnd: Lsn): void;
  /** All that could be read has been handled; `dry` when nothing more is there at the moment. */
  drained(dry: boolean): void;
  /** It is over: by `close` (null) or by an error. */
  ended(error: unknown): void;
}

export interface ReplicationOptions {
  config: pg.ClientConfig;
  slotName: string;
  publicationName: string;
  from: Lsn;
  /** What the slot has released already; nothing below is ever reported. */
  confirmed: Lsn;
  clock: Clock;
  handler: ReplicationHandler;
}

/** The log as the server sends it. Reports the confirmed position only, never what was merely received. */
export class ReplicationStream {
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #handler: ReplicationHandler;
  readonly #holds = new Set<string>();
  readonly #stopStatus: () => void;
  #confirmed: Lsn;
  #statusDue: (() => void) | null = null;
  #windowStart: number;
  #windowBytes = 0;
  #started = false;
  #closing = false;

  /** Resolves when the server has begun to send. It is held for the reason `start`: nothing is handled before `release`. */
  static async open(options: ReplicationOptions): Promise<ReplicationStream> {
    const wire = await Wire.connect(options.config, { replication: true });
    return new Promise((resolve, reject) => {
      const stream: ReplicationStream = new ReplicationStream(wire, options, {
        resolve: () => resolve(stream),
        reject,
      });
    });
  }

  private constructor(
    wire: Wire,
    { slotName, publicationName, from, confirmed, clock, handler }: ReplicationOptions,
    opened: { resolve(): void; reject(error: unknown): void },
  ) {
    this.#wire = wire;
    this.#clock = clock;
    this.#handler = handler;
    this.#confirmed = confirmed;
    this.#windowStart = clock.now();
    // `messages`: the heartbeat is one, and shows that the reader has passed it.
    const publications = pg.escapeLiteral(quoteIdent(publicationName));
    const start = `START_REPLICATION SLOT ${quoteIdent(slotName)} LOGICAL ${formatLsn(from)} (proto_version '1', publication_names ${publications}, messages 'true')`;
    this.#stopStatus = clock.every(STATUS_EVERY_MS, () => this.#sendStatus());
    wire
      .copy(start, {
        started: () => {
          this.#started = true;
          this.hold('start');
          opened.resolve();
        },
        copyData: (buffer, begin, end) => this.#copyData(buffer, begin, end),
        drained: (dry) => this.#drained(dry),
      })
      .catch((error: unknown) => error)
      .then((error) => {
        this.#stopTimers();
        if (this.#started)
          this.#handler.ended(this.#closing ? null : (error ?? new Error('the server ended the replication stream')));
        else void wire.close().finally(() => opened.reject(error));
      });
  }

  /** The server's process. */
  get pid(): number {
    return this.#wire.pid;
  }

  /** Everything before `lsn` is durable in the destination. Sent within a moment; older is a no-op. */
  confirm(lsn: Lsn): void {
    if (lsn <= this.#confirmed) return;
    this.#confirmed = lsn;
    this.#statusDue ??= this.#clock.after(STATUS_SOON_MS, () => this.#sendStatus());
  }

  /** Stops reading for this reason, from the next message on; status reports go on. */
  hold(reason: string): void {
    this.#holds.add(reason);
    this.#wire.hold();
  }

  release(reason: string): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0) this.#wire.release();
  }

  get held(): boolean {
    return this.#holds.size > 0;
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#stopTimers();
    await this.#wire.close();
  }

  #copyData(buffer: Buffer, start: number, end: number): void {
    this.#windowBytes += end - start;
    if (buffer[start] === XLOG_DATA) this.#handler.message(buffer, start + XLOG_DATA_HEADER, end);
    else if (buffer[start] === KEEPALIVE) {
      this.#handler.keepalive(buffer.readBigUInt64BE(start + 1) as Lsn);
      if (buffer[start + KEEPALIVE_REPLY] === 1) this.#sendStatus();
    }
  }

  #drained(dry: boolean): void {
    this.#handler.drained(dry);
    if (dry && this.#wire.readsInBulk && this.#flowsFast()) this.#rest();
  }

  /** Measured over a while, because the server sends each row on its own to a reader that keeps up. */
  #flowsFast(): boolean {
    const now = this.#clock.now();
    const elapsed = now - this.#windowStart;
    if (elapsed < RATE_WINDOW_MS) return false;
    const fast = this.#windowBytes / elapsed > FAST_BYTES_PER_MS;
    this.#windowStart = now;
    this.#windowBytes = 0;
    return fast;
  }

  /** Waking up for each row would slow the server, which then writes each row alone; so rows collect in the kernel. */
  #rest(): void {
    this.hold('rest');
    this.#clock.after(REST_MS, () => this.release('rest'));
  }

  #sendStatus(): void {
    this.#statusDue?.();
    this.#statusDue = null;
    if (this.#closing) return;
    const status = Buffer.alloc(STATUS_BYTES);
    status[0] = STATUS_UPDATE;
    // Written, flushed, applied: the server may remove the log up to there, so only what is confirmed is told.
    for (const at of [1, 9, 17]) status.writeBigUInt64BE(this.#confirmed, at);
    status.writeBigInt64BE(BigInt(this.#clock.wall() - POSTGRES_EPOCH_MS) * 1000n, 25);
    this.#wire.writeCopyData(status);
  }

  #stopTimers(): void {
    this.#stopStatus();
    this.#statusDue?.();
    this.#statusDue = null;
  }
}

const XLOG_DATA = 0x77;
const XLOG_DATA_HEADER = 25;
const KEEPALIVE = 0x6b;
const KEEPALIVE_REPLY = 17;
const STATUS_UPDATE = 0x72;
const STATUS_BYTES = 34;
const STATUS_EVERY_MS = 10_000;
const STATUS_SOON_MS = 50;
const POSTGRES_EPOCH_MS = 946_684_800_000;
const RATE_WINDOW_MS = 10;
const FAST_BYTES_PER_MS = 2000;
const REST_MS = 25;

import pg from 'pg';
import { asPgError } from '../connection.ts';
import type { Query } from './catalog.ts';
import type { Clock } from './clock.ts';
import { Wire } from './wire.ts';

/** Connections beside the log: a small pool for the catalog and look-ups, and at most `maxThreads` that read tables. */
export class SideConnections {
  readonly #config: pg.ClientConfig;
  readonly #pool: pg.Pool;
  readonly #open = new Set<Wire>();
  readonly #waiting: (() => void)[] = [];
  readonly #retryCount: number;
  readonly #clock: Clock;
  #free: number;

  constructor(config: pg.ClientConfig, { maxThreads, retryCount, clock }: SideOptions) {
    this.#config = config;
    this.#free = maxThreads;
    this.#retryCount = retryCount;
    this.#clock = clock;
    this.#pool = new pg.Pool({ ...config, max: POOL_MAX, idleTimeoutMillis: 30_000 });
    // An idle connection that breaks is replaced at the next use; whoever has one is told by the query.
    this.#pool.on('error', () => {});
  }

  readonly query: Query = async (text) => {
    try {
      // Several statements in one text give several results; the last one is asked for.
      const answer = await this.#pool.query({ text, rowMode: 'array', types: AS_TEXT });
      return (Array.isArray(answer) ? answer.at(-1) : answer).rows;
    } catch (error) {
      throw asPgError(error, 'source');
    }
  };

  /** A connection of its own, when one of `maxThreads` is free. Give it to `end`. */
  async begin(): Promise<Wire> {
    await this.#acquire();
    try {
      const wire = await this.#connect();
      this.#open.add(wire);
      return wire;
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async end(wire: Wire): Promise<void> {
    await wire.close();
    if (this.#open.delete(wire)) this.#release();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((wire) => wire.close()));
    await this.#pool.end();
  }

  /** A server that is short of connections for a moment must not end a snapshot. */
  async #connect(): Promise<Wire> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await Wire.connect(this.#config);
      } catch (error) {
        if (attempt >= this.#retryCount || asPgError(error, 'source').code !== 'source-unavailable') throw error;
        await this.#clock.sleep(RETRY_FIRST_MS * 2 ** attempt);
      }
    }
  }

  async #acquire(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

export interface SideOptions {
  /** Connections that read tables at once. */
  maxThreads: number;
  /** How often one of them is tried again. */
  retryCount: number;
  clock: Clock;
}

const POOL_MAX = 4;
const RETRY_FIRST_MS = 100;
/** Every value as the server writes it. */
const AS_TEXT = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;

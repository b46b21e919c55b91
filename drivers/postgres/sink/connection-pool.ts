import pg from 'pg';

/** A connection with what it holds for the tables that used it before. */
export interface Session {
  readonly client: pg.Client;
  /** Names of the staging tables of this session, oldest first. */
  readonly stages: Set<string>;
  /** False once the connection has failed. */
  usable: boolean;
}

interface Waiting {
  toHold: boolean;
  take(session: Session): void;
  fail(error: Error): void;
}

export interface PoolOptions {
  config: pg.ClientConfig;
  connectionsMax: number;
  /** After which a connection that nobody uses is closed. */
  idleMs: number;
}

/**
 * A bounded set of connections for all tables. A table gets, where it can, one that has its staging table already. Rows
 * that hold one until their commit never take the last: that commit may wait for the commit of another table.
 */
export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #idle = new Map<Session, NodeJS.Timeout>();
  readonly #waiting: Waiting[] = [];
  readonly #ending = new Set<Promise<void>>();
  #open = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** True when rows may hold a connection without waiting for another table to release one. */
  get hasFreeToHold(): boolean {
    return this.#waiting.length === 0 && this.#free > 1;
  }

  async acquire(stage: string | null = null, { toHold = false } = {}): Promise<Session> {
    if (this.#closed) throw new Error('the connection pool is closed');
    if (this.#free > (toHold ? 1 : 0)) return this.#takeIdle(stage) ?? this.#connect();
    return new Promise((take, fail) => this.#waiting.push({ toHold, take, fail }));
  }

  /** The session must be outside a transaction. One that is not usable is closed. */
  release(session: Session): void {
    if (!session.usable || this.#closed) {
      this.#end(session);
      this.#connectForWaiting();
      return;
    }
    const next = this.#nextWaiting(this.#free + 1);
    if (next) {
      next.take(session);
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.delete(session);
      this.#end(session);
    }, this.#options.idleMs);
    timer.unref();
    this.#idle.set(session, timer);
  }

  async use<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const session = await this.acquire();
    try {
      return await work(session.client);
    } finally {
      this.release(session);
    }
  }

  /** Ends idle connections now and the others when they are released. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { fail } of this.#waiting.splice(0)) fail(new Error('the connection pool is closed'));
    for (const [session, timer] of this.#idle) {
      clearTimeout(timer);
      this.#end(session);
    }
    this.#idle.clear();
    await Promise.all(this.#ending);
  }

  get #free(): number {
    return this.#idle.size + this.#options.connectionsMax - this.#open;
  }

  #nextWaiting(free: number): Waiting | undefined {
    const index = this.#waiting.findIndex(({ toHold }) => free > (toHold ? 1 : 0));
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0];
  }

  #takeIdle(stage: string | null): Session | null {
    let found: Session | null = null;
    for (const session of this.#idle.keys()) {
      found = session;
      if (stage !== null && session.stages.has(stage)) break;
    }
    if (found) {
      clearTimeout(this.#idle.get(found));
      this.#idle.delete(found);
    }
    return found;
  }

  async #connect(): Promise<Session> {
    this.#open++;
    const client = new pg.Client(this.#options.config);
    const session: Session = { client, stages: new Set(), usable: true };
    // A query in flight rejects by itself; without a listener the failure of an idle connection would end the process.
    client.on('error', () => this.#lose(session));
    client.on('end', () => this.#lose(session));
    try {
      await client.connect();
    } catch (error) {
      this.#open--;
      client.end().catch(() => {});
      this.#connectForWaiting();
      throw error;
    }
    return session;
  }

  #lose(session: Session): void {
    session.usable = false;
    const timer = this.#idle.get(session);
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#idle.delete(session);
    this.#end(session);
  }

  #end(session: Session): void {
    session.usable = false;
    this.#open--;
    const ending = session.client.end().catch(() => {});
    this.#ending.add(ending);
    void ending.then(() => this.#ending.delete(ending));
  }

  /** A place became free without a session to hand over. */
  #connectForWaiting(): void {
    const next = this.#closed ? undefined : this.#nextWaiting(this.#free);
    if (next) this.#connect().then(next.take, next.fail);
  }
}

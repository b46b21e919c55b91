import pg from 'pg';

/** A connection with what it holds for the tables that used it before. */
export interface Session {
  readonly client: pg.Client;
  /** Names of the staging tables of this session, oldest first. */
  readonly stages: Set<string>;
  /** False once the connection has failed. */
  usable: boolean;
}

export interface PoolOptions {
  config: pg.ClientConfig;
  connectionsMax: number;
  /** After which a connection that nobody uses is closed. */
  idleMs: number;
}

/** A bounded set of connections for all tables. A table gets, where it can, one that has its staging table already. */
export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #idle = new Map<Session, NodeJS.Timeout>();
  readonly #waiting: { stage: string | null; take(session: Session): void; fail(error: Error): void }[] = [];
  readonly #ending = new Set<Promise<void>>();
  #open = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** True when `acquire` need not wait for another table to release. */
  get hasFree(): boolean {
    return this.#waiting.length === 0 && (this.#idle.size > 0 || this.#open < this.#options.connectionsMax);
  }

  async acquire(stage: string | null = null): Promise<Session> {
    if (this.#closed) throw new Error('the connection pool is closed');
    const idle = this.#takeIdle(stage);
    if (idle) return idle;
    if (this.#open < this.#options.connectionsMax) return this.#connect();
    return new Promise((take, fail) => this.#waiting.push({ stage, take, fail }));
  }

  /** The session must be outside a transaction. One that is not usable is closed. */
  release(session: Session): void {
    if (!session.usable || this.#closed) {
      this.#end(session);
      this.#connectForWaiting();
      return;
    }
    const next = this.#waiting.shift();
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
    const next = this.#closed ? undefined : this.#waiting.shift();
    if (next) this.#connect().then(next.take, next.fail);
  }
}

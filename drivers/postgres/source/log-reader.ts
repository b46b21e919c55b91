import { faultPoint, LIMIT, type Log, UrutauError } from '@urutau/sdk';
import type pg from 'pg';
import { asPgError, isServerClosing } from '../connection.ts';
import type { Lsn } from '../lsn.ts';
import type { Offset } from '../offset.ts';
import { columnFactsOf, loadKey, loadRoot, presentTables, type Query } from './catalog.ts';
import type { Clock } from './clock.ts';
import { PgoutputDecoder, type RelationMessage } from './pgoutput.ts';
import type { ReadView } from './read-view.ts';
import { ReplicationStream } from './replication-stream.ts';
import { type RowShape, shapeOfRelation, signatureOfRelation } from './row-shape.ts';
import { type LogPosition, TableFeed } from './table-feed.ts';
import { TableOutlet } from './table-outlet.ts';

export interface ReadTable {
  table: string;
  oid: number;
  partitioned: boolean;
  start: Offset;
  rowShape: RowShape;
}

export interface LogReaderOptions {
  config: pg.ClientConfig;
  query: Query;
  slotName: string;
  publicationName: string;
  /** The slot's own position. */
  confirmed: Lsn;
  tables: readonly ReadTable[];
  readView: ReadView;
  clock: Clock;
  log: Log;
}

/** Reads the log once for all tables, from the least start on, and deals it out to their feeds. */
export class LogReader {
  readonly outlets = new Map<string, TableOutlet>();
  readonly #options: LogReaderOptions;
  readonly #decoder = new PgoutputDecoder();
  readonly #byOid = new Map<number, TableOutlet>();
  readonly #position: LogPosition;
  readonly #budget = { bytes: 0 };
  /** Tables with rows that are in no batch yet. */
  readonly #pending = new Set<TableOutlet>();
  /** Tables whose full queue makes the reader wait. */
  readonly #full = new Set<TableOutlet>();
  #waitingSince: number | null = null;
  #stream!: ReplicationStream;
  #stopTick: () => void = () => {};
  #stopPresence: () => void = () => {};
  #dry = true;
  #chunkTime = 0;
  #failure: UrutauError | null = null;

  static async start(options: LogReaderOptions): Promise<LogReader> {
    const { config, slotName, publicationName, confirmed, clock, tables } = options;
    const reader = new LogReader(options);
    reader.#stream = await ReplicationStream.open({
      config,
      slotName,
      publicationName,
      from: leastStart(tables),
      confirmed,
      clock,
      handler: {
        message: (buffer, start, end) => reader.#message(buffer, start, end),
        keepalive: (walEnd) => reader.#keepalive(walEnd),
        drained: (dry) => reader.#drained(dry),
        ended: (error) => reader.#ended(error),
      },
    });
    reader.#stream.release('start');
    reader.#stopTick = clock.every(TICK_MS, () => reader.#tick());
    reader.#stopPresence = clock.every(PRESENCE_EVERY_MS, () => void reader.#checkPresence());
    return reader;
  }

  private constructor(options: LogReaderOptions) {
    const { tables, clock, query, readView } = options;
    this.#options = options;
    this.#position = {
      transaction: 0,
      inTransaction: false,
      commitLsn: 0n as Lsn,
      commitMicros: 0,
      decoded: leastStart(tables),
    };
    for (const table of tables) {
      const feed = new TableFeed({
        ...table,
        position: this.#position,
        budget: this.#budget,
        onEntry: () => this.outlets.get(table.table)?.wake(),
      });
      const outlet = new TableOutlet({
        feed,
        now: clock.now,
        lookUp: { ...table, query, readView, sleep: clock.sleep },
        moreIsComing: ({ pendingSince }) => !this.#mustNotWait(pendingSince),
        onTaken: () => this.#goOnWhenRoom(),
      });
      this.outlets.set(table.table, outlet);
      this.#byOid.set(table.oid, outlet);
    }
  }

  /** The server's process that serves the log. */
  get pid(): number {
    return this.#stream.pid;
  }

  /** All transactions that committed before it have been decoded. */
  get decoded(): Lsn {
    return this.#position.decoded;
  }

  get failed(): boolean {
    return this.#failure !== null;
  }

  confirm(lsn: Lsn): void {
    this.#stream.confirm(lsn);
  }

  /** The table is no longer assigned: its stream ends, the others go on. */
  remove(table: string): void {
    const outlet = this.outlets.get(table);
    if (!outlet) return;
    outlet.feed.drop(reassigned(table));
    this.outlets.delete(table);
    this.#byOid.delete(outlet.feed.oid);
    this.#pending.delete(outlet);
    this.#goOnWhenRoom();
  }

  /** Ends every stream with `reassigned` and the connection with it. */
  async close(): Promise<void> {
    for (const { feed } of this.outlets.values()) feed.drop(reassigned(feed.table));
    this.#stop();
    await this.#stream.close();
  }

  #message(buffer: Uint8Array, start: number, end: number): void {
    faultPoint('source.log.received');
    const message = this.#decoder.decode(buffer, start, end);
    switch (message.kind) {
      case 'insert':
      case 'update':
      case 'delete': {
        const outlet = this.#byOid.get(message.relationOid);
        if (!outlet) return; // A table that is held, or was removed a moment ago.
        outlet.feed.change(message, buffer, start, end, this.#chunkTime);
        this.#pending.add(outlet);
        faultPoint('source.log.decoded');
        return;
      }
      case 'begin':
        this.#position.transaction++;
        this.#position.inTransaction = true;
        this.#position.commitLsn = message.commitLsn;
        this.#position.commitMicros = message.commitMicros;
        this.#options.readView.decoded(message.xid);
        return;
      case 'commit':
        this.#position.inTransaction = false;
        this.#position.decoded = message.endLsn;
        return;
      case 'relation':
        this.#relation(message);
        return;
      case 'truncate':
        for (const oid of message.relationOids) this.#byOid.get(oid)?.feed.truncate();
        return;
      case 'message':
      case 'origin':
      case 'type':
        return;
    }
  }

  /** The server sends it before a table's first change, and again after each change of its shape. */
  #relation(message: RelationMessage): void {
    const feed = this.#byOid.get(message.oid)?.feed;
    const name = `${message.schema}.${message.name}`;
    if (!feed) {
      // The server names a partition too when it sends a change of it as one of the whole table.
      if (this.#options.tables.some(({ partitioned }) => partitioned)) this.#checkPartition(message);
      return;
    }
    if (feed.ended) return;
    // Under FULL the message does not tell the key, which may be another one.
    const full = message.replicaIdentity === 'full';
    if (name !== feed.table) feed.end(goneAs(feed.table, `it was renamed to ${name}`));
    else if (full || signatureOfRelation(message) !== feed.rowShape.signature) this.#reshape(feed, message);
  }

  /** Each partition has its own replica identity, and one may come after the start: its before-images would lack values. */
  #checkPartition(message: RelationMessage): void {
    this.#stream.hold('shape');
    loadRoot(this.#options.query, message.oid)
      .then((root) => {
        const feed = root === null ? undefined : this.#byOid.get(root)?.feed;
        if (feed && !hasIdentityOf(feed.rowShape, message)) feed.end(otherIdentity(feed.table, message));
        this.#stream.release('shape');
      })
      .catch((error: unknown) => this.#fail(asPgError(error, 'source')));
  }

  /** The message holds types by their oid only; nothing more is read until the catalog has told what they are. */
  #reshape(feed: TableFeed, message: RelationMessage): void {
    const { query } = this.#options;
    this.#stream.hold('shape');
    Promise.all([columnFactsOf(query, message.oid, message.columns), loadKey(query, message.oid)])
      .then(([facts, key]) => {
        this.#attemptReshape(feed, message, facts, key);
        this.#stream.release('shape');
      })
      .catch((error: unknown) => this.#fail(asPgError(error, 'source')));
  }

  #attemptReshape(
    feed: TableFeed,
    message: RelationMessage,
    facts: Awaited<ReturnType<typeof columnFactsOf>>,
    key: readonly string[],
  ): void {
    const { table } = feed;
    if (facts.length !== message.columns.length) {
      feed.end(new UrutauError('schema-lost', `${table}: a type of its columns no longer exists`, { table }));
      return;
    }
    try {
      const rowShape = shapeOfRelation(message, facts, key);
      if (rowShape.shape.schemaId !== feed.rowShape.shape.schemaId) feed.reshape(rowShape);
    } catch (error) {
      if (!(error instanceof UrutauError)) throw error;
      const { code, remedy, context } = error;
      feed.end(new UrutauError(code, `${table}: ${error.message}`, { cause: error, remedy, ...context, table }));
    }
  }

  /** Inside a transaction the server may tell a position that is beyond what it has sent of it. */
  #keepalive(walEnd: Lsn): void {
    if (!this.#position.inTransaction && walEnd > this.#position.decoded) this.#position.decoded = walEnd;
  }

  #drained(dry: boolean): void {
    this.#dry = dry;
    this.#chunkTime = this.#options.clock.now();
    for (const outlet of this.#pending) {
      const { feed } = outlet;
      if (feed.bytes >= QUEUE_BYTES_MAX) this.#full.add(outlet);
      if (feed.pendingRows === 0) this.#pending.delete(outlet);
      else if (outlet.waiting && this.#mustNotWait(feed.pendingSince)) {
        feed.close();
        this.#pending.delete(outlet);
      }
    }
    this.#waitWhenFull();
  }

  /** Whoever waits gets what is there as soon as nothing more can be read at once, or after a moment. */
  #mustNotWait(pendingSince: number | null): boolean {
    if (this.#dry || this.#stream.held) return true;
    return pendingSince !== null && this.#options.clock.now() - pendingSince >= FLUSH_AFTER_MS;
  }

  #waitWhenFull(): void {
    if (this.#full.size === 0 && this.#budget.bytes < ALL_QUEUES_BYTES_MAX) return;
    this.#waitingSince ??= this.#options.clock.now();
    this.#stream.hold('queues');
  }

  #goOnWhenRoom(): void {
    if (this.#waitingSince === null) return;
    for (const outlet of this.#full) {
      const { bytes, table } = outlet.feed;
      if (bytes < QUEUE_BYTES_MAX || !this.outlets.has(table)) this.#full.delete(outlet);
    }
    if (this.#full.size > 0 || this.#budget.bytes >= ALL_QUEUES_BYTES_MAX) return;
    this.#waitingSince = null;
    this.#stream.release('queues');
  }

  #tick(): void {
    const now = this.#options.clock.now();
    for (const outlet of this.outlets.values()) {
      const { closedSince, feed } = outlet;
      const lapsed = closedSince !== null && now - closedSince > LIMIT.queueKeptMs && feed.bytes > 0;
      if (lapsed) this.#drop(outlet, lapsedError(feed.table));
    }
    if (this.#waitingSince !== null && now - this.#waitingSince > LIMIT.slowConsumerMs) this.#endSlowConsumers();
    if (this.#options.readView.size > READ_VIEW_MAX) void this.#pruneReadView();
  }

  /** Only a stream that holds up another one which is taking; never while a chunk of its table is open. */
  #endSlowConsumers(): void {
    const outlets = [...this.outlets.values()];
    if (!outlets.some(({ waiting }) => waiting)) return;
    const largest = outlets.reduce((a, b) => (b.feed.bytes > a.feed.bytes ? b : a));
    for (const outlet of this.#full.size > 0 ? this.#full : [largest]) {
      if (outlet.waiting || outlet.closedSince !== null || outlet.chunks > 0) continue;
      const { table } = outlet.feed;
      const message = `changes of ${table} were not read for ${LIMIT.slowConsumerMs / 1000} s while other tables waited`;
      this.#drop(outlet, new UrutauError('slow-consumer', message, { table }));
    }
  }

  #drop({ feed }: TableOutlet, error: UrutauError): void {
    this.#options.log.warn('dropped the queue of a table', { table: feed.table, code: error.code, bytes: feed.bytes });
    feed.drop(error);
    this.#goOnWhenRoom();
  }

  /** A dropped table sends nothing, so it would look idle for ever. */
  async #checkPresence(): Promise<void> {
    if (this.#byOid.size === 0) return;
    try {
      const present = await presentTables(this.#options.query, [...this.#byOid.keys()]);
      for (const { feed } of this.outlets.values()) {
        const name = present.get(feed.oid);
        if (name === undefined) feed.end(goneAs(feed.table, 'it was dropped'));
        else if (name !== feed.table) feed.end(goneAs(feed.table, `it was renamed to ${name}`));
      }
    } catch (error) {
      // A server that shuts down waits for its walsenders, and ours waits for what the destination has not confirmed yet.
      if (isServerClosing(error)) this.#fail(asPgError(error, 'source'));
      else {
        this.#options.log.warn('could not look whether all tables are there', {
          error: asPgError(error, 'source').message,
        });
      }
    }
  }

  async #pruneReadView(): Promise<void> {
    try {
      const [row] = await this.#options.query('SELECT pg_current_snapshot()::text');
      this.#options.readView.shownBy(row![0]!);
    } catch (error) {
      this.#options.log.warn('could not take a snapshot', { error: asPgError(error, 'source').message });
    }
  }

  #ended(error: unknown): void {
    if (error !== null) this.#fail(asPgError(error, 'source'));
  }

  /** The host assigns again, which makes a new reader. */
  #fail(error: UrutauError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#options.log.warn('the replication stream ended', { code: error.code, error: error.message });
    this.#stop();
    void this.#stream.close();
    for (const { feed } of this.outlets.values()) feed.end(error);
  }

  #stop(): void {
    this.#stopTick();
    this.#stopPresence();
  }
}

const QUEUE_BYTES_MAX = 16 << 20;
const ALL_QUEUES_BYTES_MAX = 128 << 20;
const FLUSH_AFTER_MS = 20;
const TICK_MS = 1000;
const PRESENCE_EVERY_MS = 5000;
/** Transactions to remember before a snapshot is taken just to forget them. */
const READ_VIEW_MAX = 20_000;

function leastStart(tables: readonly ReadTable[]): Lsn {
  return tables.reduce((least, { start }) => (start.lsn < least.lsn ? start : least), tables[0]!.start).lsn;
}

function reassigned(table: string): UrutauError {
  return new UrutauError('reassigned', `changes of ${table}: a new assignment replaced this stream`, { table });
}

function lapsedError(table: string): UrutauError {
  return new UrutauError(
    'reassign-needed',
    `changes of ${table} were not read for ${LIMIT.queueKeptMs / 1000} s and are no longer kept`,
    {
      table,
    },
  );
}

function hasIdentityOf({ shape }: RowShape, { replicaIdentity, columns }: RelationMessage): boolean {
  if (replicaIdentity === 'full' || shape.before === 'full')
    return (replicaIdentity === 'full') === (shape.before === 'full');
  const flagged = columns.filter(({ key }) => key).map(({ name }) => name);
  return flagged.length === shape.primaryKey.length && flagged.every((name) => shape.primaryKey.includes(name));
}

function otherIdentity(table: string, { schema, name }: RelationMessage): UrutauError {
  return new UrutauError(
    'precondition-failed',
    `${table}: its partition ${schema}.${name} has another replica identity than the table`,
    {
      table,
      remedy: `Run ALTER TABLE ${schema}.${name} REPLICA IDENTITY as for ${table}, then resync the table.`,
    },
  );
}

function goneAs(table: string, why: string): UrutauError {
  return new UrutauError('table-not-found', `${table}: ${why}`, {
    table,
    remedy: 'Take the table out of the pipeline, or name it as it is called now and resync it.',
  });
}

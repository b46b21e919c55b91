import { encodeSchema, kindOf, rowSchema, type TableShape, UrutauError } from '@urutau/contract';
import { type Checkpoint, encodeCheckpoint } from '../../checkpoint/checkpoint.ts';
import type { Log } from '../../observe/log.ts';
import type { Batch } from '../batch.ts';
import type { InFlightWindow } from '../in-flight.ts';
import { type Position, Relay } from '../relay.ts';
import type { SinkPort } from '../sink/port.ts';
import { readChunks } from '../snapshot/gate.ts';
import { readPicture } from '../snapshot/picture.ts';
import type { ChangesFeed, SourcePort } from '../source/port.ts';
import { FeedCursor } from './feed-cursor.ts';
import type { Start } from './start.ts';
import type { Table } from './table.ts';

/** What all tables of a session have in common. */
export interface SessionContext {
  source: SourcePort;
  sink: SinkPort;
  window: InFlightWindow;
  writer: string;
  /** Random, one per run of the host. */
  run: string;
  /** Identity of the source, from `assign`. */
  sourceIdentity: string;
  flush: { rows: number; bytes: number; intervalMs: number };
  log: Log;
  /** Monotonic. */
  nowMs: () => number;
  wallMs: () => number;
  committed: (millis: number) => void;
  /** An offset is durable in the destination. */
  confirm: (table: string, offset: string) => void;
}

/** Ends a task so that the session is begun anew with the resume points that are stored by then. */
export class ReassignWanted extends Error {
  override readonly name = 'ReassignWanted';
}

const UNCOMMITTED_BYTES_DEFAULT = 64 * 1024 * 1024;

/**
 * Carries one table through one session: a write stream, the snapshot or the rest of it, then the changes, until the
 * signal aborts. Throws what makes the table stop; everything sent until then is committed or will be read again.
 */
export class TableTask {
  readonly table: Table;
  readonly #context: SessionContext;
  readonly #start: Start;
  #relay: Relay | null = null;
  #cursor: FeedCursor | null = null;
  /** `seq` of the last batch of the changes that the relay has sent: one that only waits for room does not count. */
  #passedSeq = 0;
  #stopping = false;
  #finish: (() => void) | null = null;

  constructor(table: Table, context: SessionContext, start: Start) {
    this.table = table;
    this.#context = context;
    this.#start = start;
  }

  get position(): Position | null {
    return this.#relay?.position ?? null;
  }

  get snapshotDone(): boolean {
    return this.#relay?.position.snapshot === 'done';
  }

  commitSoon(): void {
    this.#relay?.commitSoon();
  }

  /** Stops reading, commits what was sent, and lets `run` return. */
  async drain(): Promise<void> {
    this.#stopping = true;
    this.#finish?.();
    this.#cursor?.close();
  }

  /** What the source said of this table's stream (PRG-2): an idle table moves on without a row. */
  async progressed({ stream, decoded, seq }: { stream: string; decoded: string; seq: number }): Promise<void> {
    const relay = this.#relay;
    const cursor = this.#cursor;
    if (!relay || !cursor || cursor.stream !== stream || this.#passedSeq < seq) return;
    const { offset } = relay.position;
    if (offset !== null && (await this.#context.source.compare(decoded, offset)) !== 1) return;
    // Rows may have been sent while the comparison was under way; then their own offset stands.
    if (relay.position.offset === offset) relay.advance({ ...relay.position, offset: decoded });
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = () => this.drain();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) this.#stopping = true;
    try {
      let position = this.#start.position;
      let stored = this.#start.stored;
      let stream = this.#start.stream;
      for (;;) {
        const ended = await this.#carry(position, stored, stream);
        if (ended === 'drained') return;
        // EVO-1: what came before the change of schema is committed; the next stream has the next shape.
        ({ position, stored } = ended);
        stream++;
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async #carry(
    position: Position,
    stored: string | null,
    stream: number,
  ): Promise<'drained' | { position: Position; stored: string }> {
    const { table } = this;
    const { source } = this.#context;
    const picture = position.snapshot !== 'done' && 'picture' in position.snapshot;
    if (picture) {
      const feed = await source.snapshot(table.name);
      return this.#withRelay(
        this.#shapeOf(feed.shape),
        feed,
        stored,
        stream,
        firstOffset(position, feed.endOffset, table),
        async (relay) => {
          table.apply({ kind: 'snapshot-began' });
          await readPicture(feed, relay, () => this.#stopping);
          if (this.#stopping) return;
          relay.advance({ offset: relay.position.offset, snapshot: 'done' });
          await relay.commitNow();
          throw new ReassignWanted(`the snapshot of ${table.name} is complete`);
        },
      );
    }
    const feed = await source.changes(table.name, position.offset);
    const shape = this.#shapeOf(feed.shape);
    this.#checkShapeIsWanted(feed);
    return this.#withRelay(shape, feed, stored, stream, position, (relay) => this.#stream(feed, relay));
  }

  /** The snapshot, or what is left of it, between the changes; then the changes alone. */
  async #stream(feed: ChangesFeed, relay: Relay): Promise<void> {
    const { table } = this;
    const cursor = new FeedCursor(feed);
    this.#cursor = cursor;
    this.#passedSeq = 0;
    if (this.#stopping) cursor.close();
    const pass = async (batch: Batch) => {
      await this.#pass(batch, relay);
      this.#passedSeq = batch.envelope.seq;
    };
    if (relay.position.snapshot === 'done') {
      table.apply({ kind: 'caught-up-with-snapshot' });
    } else {
      table.apply({ kind: 'snapshot-began' });
      await readChunks({
        table: table.name,
        rowsWanted: table.settings.chunkRows,
        source: this.#context.source,
        relay,
        cursor,
        pass,
        stopping: () => this.#stopping,
        nowMs: this.#context.nowMs,
        log: this.#context.log,
      });
      if (this.#stopping) return;
      table.apply({ kind: 'caught-up-with-snapshot' });
    }
    while (!this.#stopping) {
      const batch = await cursor.next();
      if (batch === null) {
        if (this.#stopping) return;
        throw new UrutauError('protocol-violation', `the changes of ${table.name} ended by themselves (CHG-1)`, {
          table: table.name,
        });
      }
      await pass(batch);
    }
  }

  async #pass(batch: Batch, relay: Relay): Promise<void> {
    const { envelope } = batch;
    const { table } = this;
    const position = { ...relay.position, offset: envelope.offset ?? relay.position.offset };
    if (envelope.event?.kind === 'truncate') {
      if (table.settings.onTruncate === 'fail') throw truncated(table.name);
      if (table.settings.onTruncate === 'ignore') {
        table.totals.truncatesIgnored++;
        this.#context.log.warn('truncate of the source ignored (onTruncate: ignore)', { table: table.name });
        relay.advance(position);
        return;
      }
    } else if (envelope.rows === 0) {
      if (envelope.offset !== undefined) relay.advance(position);
      return;
    }
    await relay.send(batch, position);
  }

  async #withRelay(
    shape: TableShape,
    feed: { close(): void },
    stored: string | null,
    stream: number,
    position: Position,
    body: (relay: Relay) => Promise<void>,
  ): Promise<'drained' | { position: Position; stored: string }> {
    const { table } = this;
    const { sink, window, writer, run, sourceIdentity, flush, nowMs } = this.#context;
    let lastStored = stored;
    try {
      position = await this.#ensure(shape, position);
      const relay = new Relay({
        table: table.settings.target,
        sink: sink.open(table.settings.target, stream, shape),
        window,
        flush,
        uncommittedBytesMax: sink.capabilities.maxUncommitted?.bytes ?? UNCOMMITTED_BYTES_DEFAULT,
        identity: {
          v: 1,
          writer,
          run,
          source: sourceIdentity,
          stream,
          schemaId: shape.schemaId ?? null,
          shape: fingerprint(table),
        },
        stored,
        position,
        nowMs,
        committed: (done) => {
          lastStored = encodeCheckpoint(done.checkpoint);
          table.committed(done, this.#context.wallMs());
          this.#context.committed(done.millis);
          const { offset } = done.checkpoint;
          if (offset !== null) this.#context.confirm(table.name, offset);
        },
        failed: () => feed.close(),
      });
      this.#relay = relay;
      try {
        await relay.raise();
        table.resyncAsked = false;
        await body(relay);
        await relay.commitNow();
        return 'drained';
      } catch (error) {
        // A feed that was closed because the relay failed reports the closing; the cause is the relay's.
        if (relay.failure) throw relay.failure;
        if (error instanceof UrutauError && error.code === 'schema-changed') {
          await relay.commitNow();
          return { position: relay.position, stored: lastStored! };
        }
        if (this.#stopping) {
          await relay.commitNow();
          return 'drained';
        }
        throw error;
      } finally {
        relay.close();
        this.#relay = null;
        this.#cursor = null;
      }
    } finally {
      feed.close();
    }
  }

  /** ENS: makes the target ready; refuses one that holds rows which no checkpoint explains. */
  async #ensure(shape: TableShape, position: Position): Promise<Position> {
    const { sink, source, writer } = this.#context;
    const { settings } = this.table;
    if (sink.ensure === null) return withoutTruncate(position);
    const { empty } = await sink.ensure({
      table: settings.target,
      writer,
      schema: Buffer.from(encodeSchema(rowSchema(shape))).toString('base64'),
      primaryKey: shape.primaryKey,
      writeMode: settings.writeMode,
      createIfNotExists: settings.createIfNotExists,
      evolve: false,
      check: false,
      options: { source: source.name, onDelete: settings.onDelete },
    });
    if (empty) return withoutTruncate(position);
    if (this.#start.fresh && !this.table.resyncAsked) throw notEmpty(settings.target);
    return position;
  }

  /** The key that the pipeline file names wins over the source's own. */
  #shapeOf(shape: TableShape): TableShape {
    const { settings } = this.table;
    const primaryKey = settings.primaryKey ? [...settings.primaryKey] : shape.primaryKey;
    const names = new Set(shape.fields.map(({ name }) => name));
    const missing = primaryKey.filter((name) => !names.has(name));
    if (missing.length > 0) {
      throw new UrutauError(
        'schema-unsupported',
        `${settings.source} has no column ${missing.join(', ')} for its key`,
        {
          table: settings.source,
          remedy: `Name columns of the table in primaryKey: it has ${[...names].join(', ')}.`,
        },
      );
    }
    if (settings.writeMode === 'upsert' && primaryKey.length === 0) {
      throw new UrutauError('precondition-failed', `${settings.source} has no key, which upsert needs`, {
        table: settings.source,
        remedy: 'Give the table a primary key, name its key columns in primaryKey, or use writeMode: append.',
      });
    }
    if (settings.writeMode !== 'upsert' && this.#context.source.assign) requireFullImage(shape, settings.source);
    return { ...shape, primaryKey };
  }

  #checkShapeIsWanted({ shape }: ChangesFeed): void {
    const { acceptedShapes } = this.#start;
    const { schemaId } = shape;
    if (schemaId === undefined || acceptedShapes.has(schemaId)) return;
    if (acceptedShapes.size === 0 || this.table.acceptNextShape) {
      acceptedShapes.add(schemaId);
      this.table.acceptNextShape = false;
      return;
    }
    throw new UrutauError('schema-changed', `the columns of ${this.table.name} changed at the source`, {
      table: this.table.name,
      remedy:
        `Make the target ${this.table.settings.target} fit and run \`urutau-host table resume\`; ` +
        'or `table resync`, which reads the table anew.',
    });
  }
}

/**
 * A value that the log leaves out is looked up where there is no full before-image (UNCH-3). In upsert a later change
 * mends what the look-up found too new; in append that row would stay wrong.
 */
function requireFullImage({ fields, before, primaryKey }: TableShape, table: string): void {
  const large = fields.filter(({ name, type }) => !primaryKey.includes(name) && LARGE.has(kindOf(type)));
  if (before === 'full' || large.length === 0) return;
  const names = large.map(({ name }) => name).join(', ');
  throw new UrutauError(
    'precondition-failed',
    `${table} is written in append, and its changes may leave out the values of ${names}, which no look-up can give as they were then`,
    {
      table,
      remedy: `Make its changes hold the whole row before (ALTER TABLE ${table} REPLICA IDENTITY FULL), or use writeMode: upsert.`,
    },
  );
}

/** Kinds whose values a source may keep out of line. */
const LARGE: ReadonlySet<string> = new Set(['string', 'binary', 'json']);

/** HOST-6: for a base source the first endOffset stays the start, also when its snapshot had to be repeated. */
function firstOffset({ offset, snapshot }: Position, endOffset: string, { settings }: Table): Position {
  return { offset: settings.writeMode === 'upsert' ? (offset ?? endOffset) : endOffset, snapshot };
}

/** An empty target needs no truncate. */
function withoutTruncate(position: Position): Position {
  if (position.snapshot === 'done') return position;
  const { truncate: _truncate, ...snapshot } = position.snapshot;
  return { ...position, snapshot } as Position;
}

export function fingerprint({ settings }: Table): string {
  return `writeMode ${settings.writeMode}, key ${settings.primaryKey ? settings.primaryKey.join('+') : 'of the source'}`;
}

function notEmpty(target: string): UrutauError {
  return new UrutauError(
    'precondition-failed',
    `the target ${target} holds rows, and no checkpoint says where they come from`,
    {
      table: target,
      remedy:
        'Name another target, empty this one, or run `urutau-host table resync` to have it truncated and filled anew.',
    },
  );
}

function truncated(table: string): UrutauError {
  return new UrutauError('row-refused', `${table} was truncated at the source, and onTruncate is fail`, {
    table,
    remedy:
      'Set onTruncate: apply or ignore in the pipeline file, restart the host, and run `urutau-host table resume`.',
  });
}

export type { Checkpoint };

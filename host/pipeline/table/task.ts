import { type TableShape, UrutauError } from '@urutau/contract';
import { type Checkpoint, encodeCheckpoint } from '../../checkpoint/checkpoint.ts';
import { faultPoint } from '../../fault-point.ts';
import type { Log } from '../../observe/log.ts';
import type { Batch } from '../batch.ts';
import { CheckpointedStream, type Position, type TableStream } from '../checkpointed-stream.ts';
import type { InFlightWindow } from '../in-flight.ts';
import { firstOrdinal } from '../quarantine/dead-letter.ts';
import type { DeadLetterBox } from '../quarantine/dead-letter-box.ts';
import { QuarantinedKeys } from '../quarantine/quarantined-keys.ts';
import { QuarantiningStream } from '../quarantine/quarantining-stream.ts';
import { Relay } from '../relay.ts';
import type { SinkPort } from '../sink/port.ts';
import { readChunks } from '../snapshot/gate.ts';
import { readPicture } from '../snapshot/picture.ts';
import type { ChangesFeed, Feed, SnapshotFeed, SourcePort } from '../source/port.ts';
import { ensureRequest } from './ensure-request.ts';
import { FeedCursor } from './feed-cursor.ts';
import type { Start } from './start.ts';
import type { Table } from './table.ts';
import { wantedShape } from './wanted-shape.ts';

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
  deadLetters: DeadLetterBox;
  /** Dead letters of the table whose ordinals are below `before` no longer count, and may go. */
  lettersVoid: (table: Table, before: bigint) => void;
  /** An offset is durable in the destination. */
  confirm: (table: string, offset: string) => void;
}

/** Ends a task so that the session is begun anew with the resume points that are stored by then. */
export class ReassignWanted extends Error {
  override readonly name = 'ReassignWanted';
}

const UNCOMMITTED_BYTES_DEFAULT = 64 * 1024 * 1024;

/** What a write stream begins with. */
interface Beginning {
  position: Position;
  keys: QuarantinedKeys;
  stored: string | null;
  stream: number;
}

/** How one write stream of a table ended: for good, or to be followed by one that begins after its last commit. */
type StreamEnd = 'drained' | Beginning;

/**
 * Carries one table through one session: a write stream, the snapshot or the rest of it, then the changes, until it is
 * drained. Throws what makes the table stop; everything sent until then is committed or will be read again.
 */
export class TableTask {
  readonly table: Table;
  readonly #context: SessionContext;
  readonly #start: Start;
  /** Cuts short what is being read: because the task is drained, or because nothing can be written any more. */
  readonly #reading = new AbortController();
  readonly #source: SourcePort;
  #relay: Relay | null = null;
  #cursor: FeedCursor | null = null;
  /** `seq` of the last batch of the changes that the relay has sent: one that only waits for room does not count. */
  #passedSeq = 0;
  #stopping = false;
  #picture: boolean;
  #idle = false;

  constructor(table: Table, context: SessionContext, start: Start) {
    this.table = table;
    this.#context = context;
    this.#start = start;
    this.#source = context.source.within(this.#reading.signal);
    this.#picture = isPicture(start.position);
  }

  get position(): Position | null {
    return this.#relay?.position ?? null;
  }

  get snapshotDone(): boolean {
    return this.#relay?.position.snapshot === 'done';
  }

  /** True from the start until its one consistent picture is read: then a new session would have it begun anew. */
  get readsPicture(): boolean {
    return this.#picture;
  }

  /** True while it streams and waits for the source alone. */
  get idle(): boolean {
    return this.#idle;
  }

  commitSoon(): void {
    this.#relay?.commitSoon();
  }

  /** Stops reading, commits what was sent, and lets `run` return. */
  drain(): void {
    this.#stopping = true;
    this.#reading.abort();
  }

  /** What the source said of this table's stream (PRG-2): an idle table moves on without a row. */
  async progressed({ stream, decoded, seq }: { stream: string; decoded: string; seq: number }): Promise<void> {
    const relay = this.#relay;
    const cursor = this.#cursor;
    if (!relay || !cursor || cursor.stream !== stream || this.#passedSeq < seq) return;
    const { offset } = relay.position;
    if (offset !== null && (await this.#context.source.compare(decoded, offset)) !== 1) return;
    // Rows may have been sent while the comparison was under way; then their own offset stands.
    relay.moveOn(offset, decoded);
  }

  async run(): Promise<void> {
    let beginning: Beginning = this.#start;
    try {
      while (!this.#stopping) {
        const ended = await this.#carry(beginning);
        if (ended === 'drained') return;
        beginning = ended;
      }
    } catch (error) {
      // Only what was still being opened ends with this very reason.
      if (error !== this.#reading.signal.reason) throw error;
    } finally {
      this.#picture = false;
    }
  }

  async #carry(beginning: Beginning): Promise<StreamEnd> {
    const { table } = this;
    const { position } = beginning;
    if (isPicture(position)) {
      const feed = await this.#source.snapshot(table.name);
      const start = firstOffset(position, feed.endOffset, table);
      return this.#withRelay(feed, { ...beginning, position: start }, (relay) => this.#readPicture(feed, relay));
    }
    const feed = await this.#source.changes(table.name, position.offset);
    return this.#withRelay(feed, beginning, async (relay) => {
      await this.#stream(feed, relay);
      return 'drained';
    });
  }

  async #readPicture(feed: SnapshotFeed, relay: Relay): Promise<'drained' | 'next-stream'> {
    const { table } = this;
    table.apply({ kind: 'snapshot-began' });
    await readPicture(feed, relay, () => this.#stopping);
    if (this.#stopping) return 'drained';
    faultPoint('host.picture.relayed');
    relay.advance({ offset: relay.position.offset, snapshot: 'done' });
    await relay.commitNow();
    this.#picture = false;
    if (this.#source.assign) throw new ReassignWanted(`the snapshot of ${table.name} is complete`);
    return 'next-stream';
  }

  /** The snapshot, or what is left of it, between the changes; then the changes alone. */
  async #stream(feed: ChangesFeed, relay: Relay): Promise<void> {
    const { table } = this;
    const cursor = new FeedCursor(feed);
    this.#cursor = cursor;
    this.#passedSeq = 0;
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
        source: this.#source,
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
      this.#idle = true;
      const batch = await cursor.next();
      this.#idle = false;
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
      if (!this.#context.sink.takesEvents) throw cannotBeTold(table.name);
    } else if (envelope.rows === 0) {
      if (envelope.offset !== undefined) relay.advance(position);
      return;
    }
    await relay.send(batch, position);
  }

  async #withRelay(
    feed: Feed,
    beginning: Beginning,
    body: (relay: Relay) => Promise<'drained' | 'next-stream'>,
  ): Promise<StreamEnd> {
    const { table } = this;
    const { sink, window, flush, nowMs } = this.#context;
    let last: Checkpoint | null = null;
    try {
      const shape = wantedShape(feed.shape, table.settings, this.#source.assign !== null);
      if (!isPicture(beginning.position)) this.#acceptShape(shape);
      const position = await this.#ensure(shape, beginning);
      faultPoint('host.target.ensured');
      if (this.#quarantines(beginning.keys)) await this.#context.deadLetters.prepare();
      const relay = new Relay({
        table: table.settings.target,
        stream: this.#openStream(shape, { ...beginning, position }),
        window,
        flush,
        uncommittedBytesMax: sink.capabilities.maxUncommitted?.bytes ?? UNCOMMITTED_BYTES_DEFAULT,
        position,
        nowMs,
        committed: (done) => {
          last = done.checkpoint;
          table.committed(done, this.#context.wallMs());
          this.#context.committed(done.millis);
          const { offset } = done.checkpoint;
          if (offset !== null) this.#context.confirm(table.name, offset);
        },
        failed: () => this.#reading.abort(),
      });
      this.#relay = relay;
      try {
        await relay.raise();
        faultPoint('host.stream.raised');
        // One that was asked for since then is the next session's.
        if (this.#start.resync) table.resyncAsked = false;
        if (this.#start.voidsLetters) this.#context.lettersVoid(table, firstOrdinal(this.#start.stream));
        const ended = await body(relay);
        await relay.commitNow();
        return ended === 'drained' ? ended : after(last!);
      } catch (error) {
        // What was cut short because the relay failed reports the cut; the cause is the relay's.
        if (relay.failure) throw relay.failure;
        if (error instanceof UrutauError && error.code === 'schema-changed' && error.context.offset !== undefined) {
          // EVO-2: what came before the change of schema is committed; the next stream has the next shape.
          await relay.commitNow();
          return after(last!);
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
        this.#idle = false;
      }
    } finally {
      feed.close();
    }
  }

  #openStream(shape: TableShape, { position, keys, stored, stream }: Beginning): TableStream {
    const { table } = this;
    const { source, target, onPoison } = table.settings;
    const { sink, writer, run, sourceIdentity, deadLetters, wallMs, log } = this.#context;
    const open = (number: number, stored: string | null) =>
      new CheckpointedStream({
        table: target,
        sink: sink.open(target, number, shape),
        identity: {
          v: 1,
          writer,
          run,
          source: sourceIdentity,
          stream: number,
          schemaId: shape.schemaId ?? null,
          shape: fingerprint(table),
        },
        stored,
      });
    if (!this.#quarantines(keys)) return open(stream, stored);
    return new QuarantiningStream({
      pipeline: writer,
      run,
      table: source,
      target,
      shape,
      open,
      first: { number: stream, stored },
      position,
      keys,
      takesRefusals: onPoison === 'quarantine',
      store: (letters) => deadLetters.store(letters),
      quarantined: (letters) => {
        table.quarantined(letters);
        for (const letter of letters) log.warn('change quarantined', { table: table.name, ...letter });
      },
      voided: (before) => this.#context.lettersVoid(table, before),
      wallMs,
    });
  }

  /** Keys that are quarantined stay so, whatever the file says by now: their later changes may not pass the earlier. */
  #quarantines(keys: QuarantinedKeys): boolean {
    if (this.table.settings.onPoison !== 'quarantine') return keys.size > 0;
    if (this.#context.sink.positions === 'store') throw cannotQuarantine(this.#context.sink.name);
    return true;
  }

  /** Makes the target ready; refuses one that holds rows which no checkpoint explains. */
  async #ensure(shape: TableShape, { position, stored }: Beginning): Promise<Position> {
    const { sink, writer } = this.#context;
    const { settings } = this.table;
    if (sink.ensure === null) return withoutTruncate(position);
    const request = ensureRequest(settings, shape, { writer, source: this.#source.name });
    const { empty } = await sink.ensure(request, this.#reading.signal);
    if (empty) return withoutTruncate(position);
    if (stored === null && !this.#start.resync) throw notEmpty(settings.target);
    return position;
  }

  /** `schemaChange: pause`: only a shape that is known, or that a person resumed the table for, is written. */
  #acceptShape({ schemaId }: TableShape): void {
    const { acceptedShapes } = this.#start;
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

function after(last: Checkpoint): Beginning {
  const { offset, snapshot, stream } = last;
  return {
    position: { offset, snapshot },
    keys: QuarantinedKeys.of(last),
    stored: encodeCheckpoint(last),
    stream: stream + 1,
  };
}

function isPicture({ snapshot }: Position): boolean {
  return snapshot !== 'done' && 'picture' in snapshot;
}

/** HOST-10: for a base source the first endOffset stays the start, also when its snapshot had to be repeated. */
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

/** Without numbers of streams and cuts it is not certain which row a refusal speaks of. */
function cannotQuarantine(sink: string): UrutauError {
  return new UrutauError('config-invalid', `onPoison: quarantine needs a sink with commit/1, which ${sink} is not`, {
    remedy: 'Write onPoison: pause or stop.',
  });
}

function cannotBeTold(table: string): UrutauError {
  return new UrutauError('row-refused', `${table} was truncated at the source, which this sink cannot be told`, {
    table,
    remedy: 'Empty the target yourself, set onTruncate: ignore, restart the host, and run `urutau-host table resume`.',
  });
}

function truncated(table: string): UrutauError {
  return new UrutauError('row-refused', `${table} was truncated at the source, and onTruncate is fail`, {
    table,
    remedy:
      'Set onTruncate: apply or ignore in the pipeline file, restart the host, and run `urutau-host table resume`.',
  });
}

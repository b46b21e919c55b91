import { type ChangeBatch, UrutauError } from '@urutau/sdk';
import { batchMessages, type EncodedRows, ORDINALS_PER_ROW } from './batch-messages.ts';
import type { ConnectionPool, Session } from './connection-pool.ts';
import { CopyIn } from './copy-in.ts';
import { copyIntoStage, copyIntoTarget, copyOutOfStage, type MergeContent } from './merge.ts';
import { relayCopy } from './relay-copy.ts';
import { RowLocator } from './row-locator.ts';
import { ensureStage } from './stage.ts';
import type { TablePlan } from './table-plan.ts';

/** What all writers of a sink share. */
export interface SegmentHost {
  /** For rows. A connection is held from a segment's first rows on the server until its commit. */
  readonly pool: ConnectionPool;
  /** For what must never wait behind rows: checkpoints, and questions about them. */
  readonly control: ConnectionPool;
  /** Bytes that wait in memory over all tables. */
  readonly held: { bytes: number };
}

/** Where a segment's rows go: its staging table, or the target itself. */
export type Destination = 'stage' | 'target';

/** Rows beyond this go to the server before the commit comes; what is below costs a connection only while it commits. */
const HELD_BYTES_MAX = 512 * 1024;
/** Over all tables. Beyond it a writer waits for a connection, and with it its stream. */
const HELD_BYTES_MAX_TOTAL = 48 * 1024 * 1024;

/**
 * The rows of one table between two cuts. They wait in memory while they are few, then stream into the transaction that
 * the commit will end. After a truncate nothing of what came before it is left.
 */
export class Segment {
  readonly #plan: TablePlan;
  readonly #host: SegmentHost;
  readonly #held: { rows: EncodedRows; seq: number }[] = [];
  readonly locator: RowLocator;
  #heldBytes = 0;
  #session: Session | null = null;
  #copy: CopyIn | null = null;
  #destination: Destination = 'stage';
  #ordinalEnd: number;
  #phase: string | undefined;
  #content: MergeContent = { mayRepeatKeys: false, hasDeletes: false };
  #discarded = false;
  /** The batches that it covers. */
  seqFirst: number;
  seqLast: number;
  /** It empties the target, and has no rows. */
  truncates = false;

  constructor(plan: TablePlan, host: SegmentHost, { seq, ordinal }: { seq: number; ordinal: number }) {
    this.#plan = plan;
    this.#host = host;
    this.#ordinalEnd = ordinal;
    this.locator = new RowLocator(plan);
    this.seqFirst = seq;
    this.seqLast = seq;
  }

  get session(): Session | null {
    return this.#session;
  }

  get destination(): Destination {
    return this.#destination;
  }

  /** Where the ordinals of the next segment begin. */
  get ordinalEnd(): number {
    return this.#ordinalEnd;
  }

  get content(): MergeContent {
    return this.#content;
  }

  /** Takes a batch. `destination` says where rows go if this is the moment at which they leave memory. */
  async add(batch: ChangeBatch, destination: () => Destination): Promise<void> {
    const { seq, phase = 'stream' } = batch.envelope;
    const base = this.#ordinalEnd;
    this.locator.batchBegins(seq, base);
    for (const rows of batchMessages(this.#plan, batch, base)) {
      this.#note(rows, batch, phase);
      if (this.#copy) await this.#send(rows, seq);
      else await this.#hold(rows, seq, destination);
    }
    this.#ordinalEnd = base + ORDINALS_PER_ROW * batch.rows;
  }

  /** Everything before the truncate is forgotten (semantics of an ordered event). */
  async truncate(): Promise<void> {
    await this.discard();
    this.#discarded = false;
    this.truncates = true;
  }

  /** Brings everything onto a connection, inside a transaction. */
  async start(destination: Destination, { toHold = false } = {}): Promise<Session> {
    if (this.#session) return this.#session;
    const session = await this.#host.pool.acquire(this.#plan.stage.name, { toHold });
    if (this.#discarded) {
      this.#host.pool.release(session);
      throw discardedMeanwhile(this.#plan);
    }
    this.#session = session;
    this.#destination = destination;
    if (destination === 'stage') await ensureStage(session, this.#plan.stage);
    if (this.#discarded) throw discardedMeanwhile(this.#plan);
    const copy = destination === 'stage' ? copyIntoStage(this.#plan) : copyIntoTarget(this.#plan);
    this.#copy = new CopyIn(session.client, `begin isolation level read committed; ${copy}`);
    const held = this.#held.splice(0);
    this.#releaseHeld();
    for (const { rows, seq } of held) await this.#send(rows, seq);
    return session;
  }

  /** Takes over the rows of the segment that follows, for a commit that covers both. */
  async absorb(next: Segment): Promise<void> {
    this.#content = {
      mayRepeatKeys: true,
      hasDeletes: this.#content.hasDeletes || next.#content.hasDeletes,
    };
    this.locator.continueWith(next.locator);
    if (next.#session) {
      await next.endRows();
      this.locator.losesCount();
      await relayCopy(next.#session.client, copyOutOfStage(this.#plan), this.#copy!);
    } else {
      const held = next.#held.splice(0);
      next.#releaseHeld();
      for (const { rows, seq } of held) await this.#send(rows, seq);
    }
    await next.discard();
  }

  /** Every row is on the server. */
  async endRows(): Promise<void> {
    await this.#copy?.end();
    this.#copy = null;
  }

  /** The transaction has ended, whichever way. */
  releaseSession(): void {
    if (this.#session) this.#host.pool.release(this.#session);
    this.#session = null;
  }

  /** Rolls back and forgets. Harmless when repeated. */
  async discard(): Promise<void> {
    this.#discarded = true;
    this.#held.length = 0;
    this.#releaseHeld();
    this.locator.clear();
    if (!this.#session) return;
    const session = this.#session;
    const copy = this.#copy;
    this.#session = null;
    this.#copy = null;
    await copy?.abort();
    await rollback(session);
    this.#host.pool.release(session);
  }

  /** Which changes make the cheap merge impossible. */
  #note({ tuples }: EncodedRows, batch: ChangeBatch, phase: string): void {
    const { before, after } = tuples;
    if (this.#phase !== undefined && this.#phase !== phase) this.#content = { ...this.#content, mayRepeatKeys: true };
    this.#phase = phase;
    if (before.length > 0) this.#content = { mayRepeatKeys: true, hasDeletes: true };
    if (this.#content.mayRepeatKeys) return;
    for (let i = 0; i < after.length; i++) {
      if (batch.op(after.rows[i]!) !== 'c') {
        this.#content = { ...this.#content, mayRepeatKeys: true };
        return;
      }
    }
  }

  async #hold(rows: EncodedRows, seq: number, destination: () => Destination): Promise<void> {
    this.#held.push({ rows, seq });
    this.#heldBytes += rows.message.length;
    this.#host.held.bytes += rows.message.length;
    if (this.#heldBytes <= HELD_BYTES_MAX) return;
    // No connection is free: memory still is, and a commit may soon need none.
    if (!this.#host.pool.hasFreeToHold && this.#host.held.bytes <= HELD_BYTES_MAX_TOTAL) return;
    await this.start(destination(), { toHold: true });
  }

  async #send(rows: EncodedRows, seq: number): Promise<void> {
    if (this.#copy === null) throw discardedMeanwhile(this.#plan);
    this.locator.sent(rows, seq);
    await this.#copy.write(rows.message);
  }

  #releaseHeld(): void {
    this.#host.held.bytes -= this.#heldBytes;
    this.#heldBytes = 0;
  }
}

function discardedMeanwhile({ table }: TablePlan): UrutauError {
  return new UrutauError('stream-lost', `the rows of ${table} were discarded while they were written`, { table });
}

/** A connection that cannot even roll back is of no more use. */
export async function rollback(session: Session): Promise<void> {
  try {
    await session.client.query('rollback');
  } catch {
    session.usable = false;
  }
}

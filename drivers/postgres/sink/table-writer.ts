import {
  type ChangeBatch,
  type CommitRequest,
  type Envelope,
  faultPoint,
  type TableWriter,
  UrutauError,
} from '@urutau/sdk';
import type pg from 'pg';
import { moveCheckpoint } from './checkpoints.ts';
import type { fieldEncoder } from './field-encoder.ts';
import { canCopyIntoTarget, MAY_TRUNCATE_SQL, type MergeContent, mergeSql, targetSql, truncateSql } from './merge.ts';
import { RefusedValue } from './refused-value.ts';
import {
  asSinkError,
  findRefused,
  isRefusal,
  isRepeatedKey,
  keyText,
  placeInCopy,
  type RefusedRow,
  refused,
  rowRefused,
} from './row-refused.ts';
import { type Destination, rollback, Segment, type SegmentHost } from './segment.ts';
import { type TablePlan, tupleColumns } from './table-plan.ts';
import { fieldOf, tupleMessage } from './tuple-message.ts';

/**
 * One write stream of one table: its rows lie in segments, one for each cut, until a commit names the cut up to which
 * they become durable. While that commit runs, the rows after it are taken into the next segment.
 */
export class PostgresTableWriter implements TableWriter {
  readonly plan: TablePlan;
  readonly stream: number | undefined;
  readonly #host: SegmentHost;
  /** Uncommitted, oldest first. Only the last may still grow. */
  #segments: Segment[] = [];
  /** Taken by the commit that runs. */
  #committing: Segment[] = [];
  #commitRun: Promise<void> = Promise.resolve();
  #isLastOpen = false;
  #failure: UrutauError | null = null;

  constructor(plan: TablePlan, stream: number | undefined, host: SegmentHost) {
    this.plan = plan;
    this.stream = stream;
    this.#host = host;
  }

  async write(batch: ChangeBatch | null, envelope: Envelope): Promise<void> {
    this.#refuseAfterFailure();
    try {
      if (batch !== null && batch.rows > 0) await this.#add(batch, envelope.seq);
      if (envelope.event?.kind === 'truncate') await this.#openSegment(envelope.seq).truncate();
    } catch (error) {
      throw await this.#fail(error, batch);
    }
    if (this.#isLastOpen) this.#segments.at(-1)!.seqLast = envelope.seq;
    // Events are cuts (CMT-15).
    if (envelope.cut || envelope.event) this.#isLastOpen = false;
  }

  async end(): Promise<void> {}

  async discard(): Promise<void> {
    this.#failure ??= new UrutauError(
      'stream-lost',
      `write stream ${this.stream} of ${this.plan.table} was discarded`,
      {
        table: this.plan.table,
        stream: this.stream,
      },
    );
    await this.#commitRun.catch(() => {});
    await this.#discardAll();
  }

  /** Makes the rows up to the cut `through` durable, with the checkpoint where there is a request for one. */
  async commit(request: CommitRequest | null): Promise<void> {
    this.#refuseAfterFailure();
    this.#commitRun = this.#commit(request);
    await this.#commitRun;
  }

  async #commit(request: CommitRequest | null): Promise<void> {
    const through = request?.through ?? Number.POSITIVE_INFINITY;
    const covered = this.#segments.filter(({ seqFirst }) => seqFirst <= through);
    const last = covered.at(-1);
    if (last && last.seqLast > through) {
      throw new UrutauError('protocol-violation', `batch ${through} of ${this.plan.table} is no cut: rows follow it`, {
        table: this.plan.table,
        stream: this.stream,
        seq: through,
      });
    }
    if (covered.length === this.#segments.length) this.#isLastOpen = false;
    this.#segments = this.#segments.slice(covered.length);
    this.#committing = covered;
    try {
      await this.#land(covered, request);
    } catch (error) {
      const known = await this.#fail(error, null);
      await Promise.all(covered.map((segment) => segment.discard()));
      throw known;
    } finally {
      this.#committing = [];
    }
  }

  /** One transaction: the fence, the truncate, the rows. */
  async #land(covered: Segment[], request: CommitRequest | null): Promise<void> {
    const truncateAt = covered.findLastIndex(({ truncates }) => truncates);
    await Promise.all(covered.slice(0, Math.max(truncateAt, 0)).map((segment) => segment.discard()));
    const truncates = truncateAt >= 0;
    const withRows = covered.slice(truncateAt + 1);
    if (withRows.length === 0) return this.#landWithoutRows(truncates, request);
    const base = withRows.find(({ session }) => session !== null) ?? withRows[0]!;
    const destination = !truncates && canCopyIntoTarget(this.plan) ? 'target' : 'stage';
    const { client } = await base.start(destination);
    try {
      for (const segment of withRows) if (segment !== base) await base.absorb(segment);
      await base.endRows();
      await this.#moveCheckpoint(client, request);
      if (truncates) await this.#truncate(client);
      if (base.destination === 'stage') await this.#merge(client, base);
      await commitTransaction(client, this.plan);
    } catch (error) {
      const known = await this.#explain(error, base);
      await base.discard();
      throw known;
    }
    base.releaseSession();
  }

  async #landWithoutRows(truncates: boolean, request: CommitRequest | null): Promise<void> {
    if (!truncates && request === null) return;
    const pool = truncates ? this.#host.pool : this.#host.control;
    const session = await pool.acquire();
    try {
      await session.client.query('begin isolation level read committed');
      await this.#moveCheckpoint(session.client, request);
      if (truncates) await this.#truncate(session.client);
      await commitTransaction(session.client, this.plan);
    } catch (error) {
      await rollback(session);
      throw error;
    } finally {
      pool.release(session);
    }
  }

  async #moveCheckpoint(client: pg.Client, request: CommitRequest | null): Promise<void> {
    if (request === null) return;
    const { writer, stream, checkpoint, previous } = request;
    await moveCheckpoint(client, this.plan.table, {
      writer,
      target: this.plan.target.full,
      stream,
      checkpoint,
      previous,
    });
    faultPoint('sink.commit.fenced');
  }

  async #truncate(client: pg.Client): Promise<void> {
    const { rows } = await client.query(MAY_TRUNCATE_SQL, [targetSql(this.plan)]);
    await client.query(truncateSql(this.plan, rows[0].may));
  }

  async #merge(client: pg.Client, { content, locator }: Segment): Promise<void> {
    try {
      await runMerge(client, this.plan, content);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await client.query('rollback to savepoint merge');
      const found = await findRefused(client, this.plan, content, locator);
      throw rowRefused(this.plan, found.error ?? error, { stream: this.stream, ...found.where });
    }
  }

  async #add(batch: ChangeBatch, seq: number): Promise<void> {
    const segment = this.#openSegment(seq);
    // Before the first row is taken: a commit of an earlier batch, which is then no cut, must not take these along.
    segment.seqLast = seq;
    await segment.add(batch, () => this.#destinationOf(segment));
  }

  #openSegment(seq: number): Segment {
    if (this.#isLastOpen) return this.#segments.at(-1)!;
    const ordinal = this.#segments.at(-1)?.ordinalEnd ?? 0;
    const segment = new Segment(this.plan, this.#host, { seq, ordinal });
    this.#segments.push(segment);
    this.#isLastOpen = true;
    return segment;
  }

  /**
   * Rows may go straight into the target only when nothing can come between: no older segment that a commit might cover
   * together with this one, and no truncate, which would wait for this transaction while its commit waits for that one.
   */
  #destinationOf(segment: Segment): Destination {
    const isFirst = this.#segments[0] === segment;
    const truncateRuns = this.#committing.some(({ truncates }) => truncates);
    return isFirst && !truncateRuns && canCopyIntoTarget(this.plan) ? 'target' : 'stage';
  }

  #refuseAfterFailure(): void {
    if (this.#failure) throw this.#failure;
  }

  /** The stream is of no more use: everything uncommitted goes, and each later call meets the same error. */
  async #fail(error: unknown, batch: ChangeBatch | null): Promise<UrutauError> {
    if (this.#failure) return this.#failure;
    const segment = this.#segments.at(-1);
    const known =
      error instanceof RefusedValue
        ? await this.#explainValue(error, batch!)
        : segment
          ? await this.#explain(error, segment)
          : asSinkError(this.plan, error);
    // A fenced commit wrote nothing, and the host may raise above the stored checkpoint with a new stream only.
    this.#failure ??= known;
    await this.#discardAll();
    return known;
  }

  async #discardAll(): Promise<void> {
    const all = this.#segments.splice(0);
    this.#isLastOpen = false;
    await Promise.all(all.map((segment) => segment.discard()));
  }

  /** Gives an error of the server its place in the stream. */
  async #explain(error: unknown, { locator }: Segment): Promise<UrutauError> {
    if (error instanceof UrutauError || !isRefusal(error)) return asSinkError(this.plan, error);
    const place = placeInCopy(error);
    const found = place && locator.byLine(place.line);
    const where: RefusedRow = { stream: this.stream, column: place ? this.#columnOf(place.tupleColumn) : undefined };
    if (!found) return rowRefused(this.plan, error, where);
    const { seq, row, key } = found;
    return rowRefused(this.plan, error, { ...where, seq, row, key: await this.#keyText(key) });
  }

  async #explainValue({ column, row, message }: RefusedValue, batch: ChangeBatch): Promise<UrutauError> {
    const { seq } = batch.envelope;
    const key = this.plan.key.map((position) => {
      const image = batch.hasAfter(row) ? batch.after : batch.before!;
      return singleField(image[position]!, this.plan.columns[position]!.form, row);
    });
    return refused(this.plan, { stream: this.stream, seq, row, column, key: await this.#keyText(key) }, message);
  }

  /** A connection of its own: the one at hand is in an aborted transaction. */
  async #keyText(key: readonly (Buffer | null)[] | null): Promise<string | undefined> {
    return this.#host.control.use((client) => keyText(client, this.plan, key)).catch(() => undefined);
  }

  #columnOf(tupleColumn: string | undefined): string | undefined {
    const position = /^c(\d+)$/.exec(tupleColumn ?? '');
    return position ? tupleColumns(this.plan)[Number(position[1])]?.name : tupleColumn;
  }
}

/** A commit of plain inserts takes the cheap way, and the general one when a key comes twice after all. */
async function runMerge(client: pg.Client, plan: TablePlan, content: MergeContent): Promise<void> {
  try {
    await client.query(['savepoint merge', ...mergeSql(plan, content)].join('; '));
  } catch (error) {
    if (content.mayRepeatKeys || !isRepeatedKey(error)) throw error;
    const general = mergeSql(plan, { ...content, mayRepeatKeys: true });
    await client.query(['rollback to savepoint merge', ...general].join('; '));
  }
}

/** When the answer is lost the outcome is unknown: the caller reads the checkpoint back (CMT-10). */
async function commitTransaction(client: pg.Client, { table, target }: TablePlan): Promise<void> {
  faultPoint('sink.commit.merged');
  const { command } = await client.query('commit');
  if (command !== 'COMMIT') {
    throw new UrutauError('internal', `${target.full}: the transaction was rolled back instead of committed`, {
      table,
    });
  }
}

/** One value in the form in which the column is written. */
function singleField(
  column: Parameters<typeof fieldEncoder>[0],
  form: Parameters<typeof fieldEncoder>[1],
  row: number,
): Buffer | null {
  const selection = { rows: Int32Array.of(row), tuples: Int32Array.of(0), length: 1 };
  try {
    return fieldOf(tupleMessage(1, [{ form, parts: [{ column, selection }], nulls: [] }], null), 0, 0);
  } catch (error) {
    // The key itself is the value that is refused.
    if (error instanceof RefusedValue) return null;
    throw error;
  }
}

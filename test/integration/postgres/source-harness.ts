import {
  ChangeBatch,
  type Column,
  changeSchema,
  isNull,
  type Log,
  type Read,
  type SourceBatch,
  type TableShape,
} from '@urutau/sdk';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../drivers/postgres/source/clock.ts';
import { sourceConfig } from '../../../drivers/postgres/source/config.ts';
import { PostgresSource } from '../../../drivers/postgres/source/postgres-source.ts';

export const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** One change as a test compares it: values as plain text or null. */
export interface Change {
  op: string;
  before: Record<string, string | null> | null;
  after: Record<string, string | null> | null;
  /** base64 */
  offset: string;
}

/** Waits a fiftieth of the time between two looks, so that a test need not. */
export const HASTY: Clock = { ...systemClock, every: (intervalMs, work) => systemClock.every(intervalMs / 50, work) };

/** A source in this process; it ends with the test. */
export function startSource(uri: string, slotName: string, clock: Clock = systemClock): PostgresSource {
  const source = new PostgresSource({ config: sourceConfig.parse({ uri, slotName }), log: SILENT, clock });
  onTestFinished(() => source.close());
  return source;
}

/** An open stream of changes, pulled one batch at a time. */
export class ChangesReader {
  readonly shape: TableShape;
  readonly stream: string;
  /** Everything pulled so far. */
  readonly changes: Change[] = [];
  readonly batches: SourceBatch[] = [];
  readonly #batches: AsyncIterator<SourceBatch>;
  readonly #stop = new AbortController();

  constructor(read: Read) {
    this.shape = read.shape;
    this.stream = read.metadata.stream!;
    this.#batches = read.open(this.#stop.signal)[Symbol.asyncIterator]();
    onTestFinished(() => this.close());
  }

  /** Pulls until `count` changes have come in all. */
  async until(count: number): Promise<Change[]> {
    while (this.changes.length < count) await this.pull();
    return this.changes;
  }

  async pull(): Promise<SourceBatch> {
    const { value, done } = await this.#batches.next();
    if (done) throw new Error('the stream ended');
    this.batches.push(value);
    this.changes.push(...changesOf(value, this.shape));
    return value;
  }

  /** Pulls until the stream fails, and answers why. */
  async failure(): Promise<unknown> {
    for (;;) {
      try {
        await this.pull();
      } catch (error) {
        return error;
      }
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#batches.return?.();
  }
}

export async function openChanges(source: PostgresSource, table: string, fromOffset?: string): Promise<ChangesReader> {
  return new ChangesReader(await source.read({ table, mode: 'changes', fromOffset }));
}

/** All batches of a finite read. */
export async function readAll(read: Read): Promise<SourceBatch[]> {
  const batches: SourceBatch[] = [];
  for await (const batch of read.open(new AbortController().signal)) batches.push(batch);
  return batches;
}

export function changesOf({ batch, envelope }: SourceBatch, shape: TableShape): Change[] {
  if (batch === null) {
    return envelope.event ? [{ op: envelope.event.kind, before: null, after: null, offset: envelope.offset! }] : [];
  }
  const decoded = new ChangeBatch(
    changeSchema(shape),
    shape,
    { seq: 1, rows: batch.rows },
    batch.header,
    Buffer.concat(batch.body),
  );
  return Array.from({ length: decoded.rows }, (_, row) => ({
    op: decoded.op(row),
    before: decoded.hasBefore(row) ? valuesOf(decoded.before!, row) : null,
    after: decoded.hasAfter(row) ? valuesOf(decoded.after, row) : null,
    offset: Buffer.from(decoded.offset(row)).toString('base64'),
  }));
}

function valuesOf(columns: readonly Column[], row: number): Record<string, string | null> {
  return Object.fromEntries(
    columns.map((column) => [column.field.name, isNull(column, row) ? null : textOf(column, row)]),
  );
}

function textOf(column: Column, row: number): string {
  switch (column.kind) {
    case 'bool':
      return String((column.bits[row >> 3]! & (1 << (row & 7))) !== 0);
    case 'string':
    case 'json':
    case 'binary':
      return Buffer.from(
        column.bytes.subarray(Number(column.offsets[row]), Number(column.offsets[row + 1])),
      ).toString();
    case 'decimal':
    case 'fixed':
    case 'uuid':
      return Buffer.from(column.bytes.subarray(row * 16, row * 16 + 16)).toString('hex');
    case 'struct':
      return '{}';
    default:
      return String(column.values[row]);
  }
}

import { type BatchLayout, decodeBatchHeader, type Envelope, type TableShape, UrutauError } from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import type { Op } from './change-batch-builder.ts';
import { bytesAt, type Column, isNull, readColumns } from './readers.ts';

type BytesColumn = Extract<Column, { kind: 'string' | 'json' | 'binary' }>;
type TimestampColumn = Extract<Column, { kind: 'timestamp' | 'timestamptz' }>;
type StructColumn = Extract<Column, { kind: 'struct' }>;

const OPS: Readonly<Record<number, Op>> = { 99: 'c', 117: 'u', 100: 'd' };

/**
 * A received batch of change records, read column by column. Views over the received bytes: keep none of them. The
 * columns are laid out when the first is asked for, so a sink that only counts costs next to nothing.
 */
export class ChangeBatch {
  readonly shape: TableShape;
  readonly envelope: Envelope;
  readonly rows: number;
  /** Bytes of the Arrow body. */
  readonly byteLength: number;
  readonly #schema: Schema;
  readonly #header: Uint8Array;
  readonly #body: Uint8Array;
  #laidOut: ChangeColumns | null = null;

  /** Without an envelope of the host, `envelope.rows` is negative and the count is the header's. */
  constructor(schema: Schema, shape: TableShape, envelope: Envelope, header: Uint8Array, body: Uint8Array) {
    this.shape = shape;
    this.envelope = envelope;
    this.rows = envelope.rows < 0 ? decodeBatchHeader(header).length : envelope.rows;
    this.byteLength = body.length;
    this.#schema = schema;
    this.#header = header;
    this.#body = body;
  }

  /** The table's columns after the change, in the order of `shape.fields`. */
  get after(): readonly Column[] {
    return this.#columns.after.children;
  }

  /** The same before the change; null when the stream carries no before-image. */
  get before(): readonly Column[] | null {
    return this.#columns.before?.children ?? null;
  }

  op(row: number): Op {
    const { op: column } = this.#columns;
    const at = Number(column.offsets[row]);
    const op = Number(column.offsets[row + 1]) - at === 1 ? OPS[column.bytes[at]!] : undefined;
    if (op === undefined) {
      const came = Buffer.from(bytesAt(column, row)).toString();
      throw new UrutauError('protocol-violation', `expected op c, u or d; came ${JSON.stringify(came)}`, { row });
    }
    return op;
  }

  hasBefore(row: number): boolean {
    const { before } = this.#columns;
    return before !== null && !isNull(before, row);
  }

  hasAfter(row: number): boolean {
    return !isNull(this.#columns.after, row);
  }

  offset(row: number): Uint8Array {
    return bytesAt(this.#columns.offset, row);
  }

  /** Nanoseconds since 1970 of the source's commit, or null. */
  tsSourceNanos(row: number): bigint | null {
    const { ts } = this.#columns;
    return isNull(ts, row) ? null : ts.values[row]!;
  }

  get #columns(): ChangeColumns {
    if (this.#laidOut === null) {
      const layout = decodeBatchHeader(this.#header);
      if (layout.length !== this.rows) {
        throw new UrutauError(
          'protocol-violation',
          `the envelope says ${this.rows} rows, the batch has ${layout.length}`,
        );
      }
      this.#laidOut = changeColumns(this.#schema, layout, this.#body);
    }
    return this.#laidOut;
  }
}

interface ChangeColumns {
  op: BytesColumn;
  before: StructColumn | null;
  after: StructColumn;
  offset: BytesColumn;
  ts: TimestampColumn;
}

/** The schema has passed `shapeOfChanges`, which is why the kinds are known. */
function changeColumns({ fields }: Schema, layout: BatchLayout, body: Uint8Array): ChangeColumns {
  const columns = new Map(readColumns(fields, layout, body).map((column) => [column.field.name, column]));
  return {
    op: columns.get('op') as BytesColumn,
    before: (columns.get('before') as StructColumn | undefined) ?? null,
    after: columns.get('after') as StructColumn,
    offset: columns.get('offset') as BytesColumn,
    ts: columns.get('ts_source') as TimestampColumn,
  };
}

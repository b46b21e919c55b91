import {
  arrowTypeOf,
  type BeforeImage,
  BoolBuilder,
  BytesBuilder,
  ChangeBatch,
  ChangeBatchBuilder,
  type ColumnBuilder,
  type CommitRequest,
  changeSchema,
  DecimalBuilder,
  type EnsureRequest,
  type Envelope,
  encodeSchema,
  FixedBytesBuilder,
  Float32Builder,
  Float64Builder,
  Int32Builder,
  Int64Builder,
  type Kind,
  METADATA,
  type Op,
  rowSchema,
  type TableShape,
  type TableWriter,
} from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { onTestFinished } from 'vitest';
import { sinkConfig } from '../../../drivers/postgres/sink/config.ts';
import { PostgresSink } from '../../../drivers/postgres/sink/sink.ts';

export type Value = null | boolean | number | bigint | string | Uint8Array;
export type Row = Record<string, Value>;

export interface Change {
  op: Op;
  after?: Row;
  before?: Row;
  offset?: string;
  tsMicros?: number;
}

/** A sink on this database, which ends with the test. */
export function openSink(uri: string, settings: { namespace?: string; tablePrefix?: string } = {}): PostgresSink {
  const sink = new PostgresSink(sinkConfig.parse({ uri, ...settings }));
  onTestFinished(() => sink.close());
  return sink;
}

/** `columns` by name; a column may name the source's own type after a space, as in `int32 smallint`. */
export function shapeOf(
  columns: Record<string, string>,
  primaryKey: string[],
  before: BeforeImage = 'key',
): TableShape {
  const fields = Object.entries(columns).map(([name, text]) => {
    const [kind = '', ...sourceType] = text.split(' ');
    const metadata = new Map<string, string>([[METADATA.kind, kind]]);
    if (sourceType.length > 0) metadata.set(METADATA.sourceType, sourceType.join(' '));
    if (kind === 'uuid' || kind === 'json') metadata.set('ARROW:extension:name', `arrow.${kind}`);
    return new Field(name, arrowTypeOf(kind as Kind), !primaryKey.includes(name), metadata);
  });
  return { fields, primaryKey, before };
}

export function ensureRequest(table: string, shape: TableShape, more: Partial<EnsureRequest> = {}): EnsureRequest {
  return {
    table,
    writer: 'test',
    schema: Buffer.from(encodeSchema(rowSchema(shape))).toString('base64'),
    primaryKey: shape.primaryKey,
    writeMode: 'upsert',
    createIfNotExists: true,
    evolve: false,
    check: false,
    options: {},
    ...more,
  };
}

/** The changes as the bytes that would travel, read back. */
export function batchOf(shape: TableShape, changes: readonly Change[], envelope: Envelope): ChangeBatch {
  const builder = new ChangeBatchBuilder(shape);
  for (const { op, before, after, offset = 'aa', tsMicros } of changes) {
    if (after) append(builder.after, shape, after);
    if (before) append(builder.openBefore(), shape, before);
    builder.close(op, Buffer.from(offset, 'hex'), tsMicros ?? null);
  }
  const { header, body } = builder.finish();
  return new ChangeBatch(changeSchema(shape), shape, envelope, header, Buffer.concat(body));
}

function append(builders: readonly ColumnBuilder[], shape: TableShape, row: Row): void {
  for (const [index, { name }] of shape.fields.entries()) {
    const value = row[name] ?? null;
    if (value === null) builders[index]!.appendNull();
    else appendValue(builders[index]!, value);
  }
}

function appendValue(builder: ColumnBuilder, value: NonNullable<Value>): void {
  if (builder instanceof BoolBuilder) builder.append(value as boolean);
  else if (builder instanceof Int64Builder || builder instanceof DecimalBuilder)
    builder.appendBigInt(BigInt(value as bigint));
  else if (builder instanceof Int32Builder || builder instanceof Float32Builder || builder instanceof Float64Builder)
    builder.append(value as number);
  else if (builder instanceof FixedBytesBuilder) builder.append(value as Uint8Array, 0);
  else if (builder instanceof BytesBuilder && typeof value === 'string') builder.appendString(value);
  else (builder as BytesBuilder).append(value as Uint8Array, 0, (value as Uint8Array).length);
}

/** Plays the host for one table: numbers batches, marks cuts and chains checkpoints. */
export class TableHost {
  readonly #sink: PostgresSink;
  readonly #table: string;
  readonly #shape: TableShape;
  readonly #name: string;
  #writer: TableWriter | null = null;
  #stream = 0;
  #seq = 0;
  #commits = 0;
  previous: string | null = null;

  constructor(sink: PostgresSink, table: string, shape: TableShape, name = 'test') {
    this.#sink = sink;
    this.#table = table;
    this.#shape = shape;
    this.#name = name;
  }

  get seq(): number {
    return this.#seq;
  }

  async open(): Promise<void> {
    await this.#writer?.discard();
    this.#stream++;
    this.#seq = 0;
    await this.#commit(0);
    this.#writer = await this.#sink.openWriter(
      { mode: 'write', table: this.#table, stream: this.#stream },
      this.#shape,
    );
  }

  async write(changes: readonly Change[], more: Partial<Envelope> = {}): Promise<void> {
    const envelope: Envelope = { seq: ++this.#seq, rows: changes.length, phase: 'stream', ...more };
    await this.#writer!.write(changes.length === 0 ? null : batchOf(this.#shape, changes, envelope), envelope);
  }

  /** A batch that was made before; its envelope must carry the next number. */
  async writeBatch(batch: ChangeBatch): Promise<void> {
    this.#seq = batch.envelope.seq;
    await this.#writer!.write(batch, batch.envelope);
  }

  async cut(): Promise<number> {
    await this.write([], { cut: true });
    return this.#seq;
  }

  async truncate(): Promise<void> {
    await this.write([], { event: { kind: 'truncate' } });
  }

  /** Commits up to `through`, or up to a cut made now. */
  async commit(through?: number): Promise<void> {
    await this.#commit(through ?? (await this.cut()));
  }

  request(through: number, previous: string | null = this.previous): CommitRequest {
    const checkpoint = JSON.stringify({ by: this.#name, stream: this.#stream, commit: ++this.#commits });
    return { writer: this.#name, table: this.#table, stream: this.#stream, through, checkpoint, previous };
  }

  async #commit(through: number): Promise<void> {
    const request = this.request(through);
    await this.#sink.commit(request);
    this.previous = request.checkpoint;
  }
}

/** A table that was made ready and opened for writing. */
export async function openTable(
  sink: PostgresSink,
  table: string,
  shape: TableShape,
  more: Partial<EnsureRequest> = {},
): Promise<TableHost> {
  await sink.ensure(ensureRequest(table, shape, more), shape);
  const host = new TableHost(sink, table, shape);
  await host.open();
  return host;
}

import { arrowTypeOf, changeSchema, type TableShape } from '@urutau/contract';
import { Field, type RecordBatch, Struct } from 'apache-arrow';
import { type Batch, batchOf } from '../batch.ts';
import type { BatchColumn } from './batch-columns.ts';
import type { Op } from './change-keys.ts';
import { takeRows } from './take-rows.ts';

/** One change that was set aside. */
export interface DeadLetter extends LetterId {
  /** Of all dead letters of a table the order in which they happened. */
  ordinal: bigint;
  /** Dead letters of different times under the same name are told apart by it (QuarantinedKeys). */
  epoch: string;
  /** For people; the host forms it anew from `change`. */
  key: string;
  op: Op;
  /** Microseconds since 1970, of the commit at the source. */
  commitMicros: bigint | null;
  /** Why: of the row that was refused the sink's own code and words. */
  code: string;
  reason: string;
  /** The row as JSON, for people; shortened where it is long. */
  image: string;
  /** The change itself, bit for bit: an Arrow IPC stream of one change record. */
  change: Uint8Array;
  quarantinedMicros: bigint;
}

/** What names a dead letter: written once more it takes the place of itself. */
export interface LetterId {
  pipeline: string;
  target: string;
  position: string;
}

const KEY = ['pipeline', 'target', 'position'] as const;

/** The first ordinal of what a write stream sets aside: a count follows. Those of a later stream are greater. */
export function firstOrdinal(stream: number): bigint {
  return BigInt(stream) << 32n;
}

export const DEAD_LETTER_SHAPE: TableShape = {
  fields: [
    new Field('pipeline', arrowTypeOf('string'), false),
    new Field('target', arrowTypeOf('string'), false),
    new Field('position', arrowTypeOf('string'), false),
    new Field('ordinal', arrowTypeOf('int64'), true),
    new Field('epoch', arrowTypeOf('string'), true),
    new Field('key', arrowTypeOf('string'), true),
    new Field('op', arrowTypeOf('string'), true),
    new Field('commit_ts', arrowTypeOf('timestamptz'), true),
    new Field('code', arrowTypeOf('string'), true),
    new Field('reason', arrowTypeOf('string'), true),
    new Field('image', arrowTypeOf('string'), true),
    new Field('change', arrowTypeOf('binary'), true),
    new Field('quarantined_at', arrowTypeOf('timestamptz'), true),
  ],
  primaryKey: [...KEY],
  before: 'key',
};

/** Upserts of dead letters, as a sink takes them. */
export function lettersBatch(letters: readonly DeadLetter[]): Batch {
  const bytes = (of: (letter: DeadLetter) => string | Uint8Array) => letters.map((letter) => Buffer.from(of(letter)));
  const after = [
    bytes(({ pipeline }) => pipeline),
    bytes(({ target }) => target),
    bytes(({ position }) => position),
    letters.map(({ ordinal }) => ordinal),
    bytes(({ epoch }) => epoch),
    bytes(({ key }) => key),
    bytes(({ op }) => op),
    letters.map(({ commitMicros }) => commitMicros),
    bytes(({ code }) => code),
    bytes(({ reason }) => reason),
    bytes(({ image }) => image),
    bytes(({ change }) => change),
    letters.map(({ quarantinedMicros }) => quarantinedMicros),
  ];
  return changesBatch('c', letters, { before: null, after });
}

/** Their deletes. */
export function lettersGoneBatch(ids: readonly LetterId[]): Batch {
  const nothing = ids.map(() => null);
  const before = DEAD_LETTER_SHAPE.fields.map(({ name }) =>
    isKey(name) ? ids.map((id) => Buffer.from(id[name])) : nothing,
  );
  return changesBatch('d', ids, { before, after: null });
}

/** The dead letters in a batch of rows that was read back. */
export function lettersIn(rows: RecordBatch): DeadLetter[] {
  // biome-ignore lint/suspicious/noExplicitAny: the types of the columns are those of the shape
  const column = (name: string) => rows.getChild(name) as any;
  const [pipeline, target, position] = ['pipeline', 'target', 'position'].map(column);
  const [ordinal, epoch] = ['ordinal', 'epoch'].map(column);
  const [key, op, code, reason, image, change] = ['key', 'op', 'code', 'reason', 'image', 'change'].map(column);
  const micros = (name: string, row: number): bigint | null => {
    const { data } = column(name);
    return column(name).get(row) === null ? null : data[0].values[row];
  };
  return Array.from({ length: rows.numRows }, (_, row) => ({
    pipeline: pipeline.get(row),
    target: target.get(row),
    position: position.get(row),
    ordinal: ordinal.get(row),
    epoch: epoch.get(row),
    key: key.get(row),
    op: op.get(row),
    commitMicros: micros('commit_ts', row),
    code: code.get(row),
    reason: reason.get(row),
    image: image.get(row),
    change: change.get(row),
    quarantinedMicros: micros('quarantined_at', row) ?? 0n,
  }));
}

function isKey(name: string): name is keyof LetterId {
  return (KEY as readonly string[]).includes(name);
}

type Values = readonly (Uint8Array | bigint | null)[];

function changesBatch(
  op: Op,
  { length: rows }: readonly unknown[],
  images: Record<'before' | 'after', readonly Values[] | null>,
): Batch {
  const schema = changeSchema(DEAD_LETTER_SHAPE);
  const nothing = Array.from({ length: rows }, () => null);
  const columns = schema.fields.map((field): BatchColumn => {
    if (field.type instanceof Struct) {
      const image = images[field.name as 'before' | 'after'];
      const children = (field.type.children as Field[]).map((child, index) =>
        columnOf(child, image?.[index] ?? nothing),
      );
      return { field, length: rows, validity: image ? null : new Uint8Array((rows + 7) >> 3), buffers: [], children };
    }
    if (field.name === 'op')
      return columnOf(
        field,
        nothing.map(() => Buffer.from(op)),
      );
    // Only the order of rows counts here, and their number in the batch is unique in it.
    if (field.name === 'offset')
      return columnOf(
        field,
        nothing.map((_, row) => Uint8Array.of(row >> 8, row)),
      );
    return columnOf(field, nothing);
  });
  const { header, body } = takeRows(columns, [...nothing.keys()]);
  return batchOf({ seq: 0, rows, ops: { [op]: rows }, phase: 'stream' }, header, [body]);
}

/** A column of texts, bytes or 64-bit integers. */
function columnOf(field: Field, values: Values): BatchColumn {
  const validity = new Uint8Array((values.length + 7) >> 3);
  for (const [row, value] of values.entries()) if (value !== null) validity[row >> 3]! |= 1 << (row & 7);
  const isBytes =
    arrowTypeOf('string').typeId === field.type.typeId || arrowTypeOf('binary').typeId === field.type.typeId;
  return {
    field,
    length: values.length,
    validity,
    buffers: isBytes ? bytesBuffers(values as (Uint8Array | null)[]) : [integers(values as (bigint | null)[])],
    children: [],
  };
}

function bytesBuffers(values: readonly (Uint8Array | null)[]): [offsets: Uint8Array, data: Uint8Array] {
  const offsets = new Int32Array(values.length + 1);
  for (const [row, value] of values.entries()) offsets[row + 1] = offsets[row]! + (value?.length ?? 0);
  return [new Uint8Array(offsets.buffer), Buffer.concat(values.map((value) => value ?? new Uint8Array(0)))];
}

function integers(values: readonly (bigint | null)[]): Uint8Array {
  return new Uint8Array(BigInt64Array.from(values, (value) => value ?? 0n).buffer);
}

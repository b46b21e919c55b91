import { asIpcStream, changeSchema, encodeSchemaHeader, type TableShape, UrutauError } from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { type Batch, batchOf } from '../batch.ts';
import type { Refusal } from '../refusal.ts';
import { type BatchColumns, bytesAt, columnsOf, isNull, viewOf } from './batch-columns.ts';
import { rowJson } from './cell-text.ts';
import { type ChangedKeys, changedKeys, named } from './change-keys.ts';
import type { DeadLetter } from './dead-letter.ts';
import type { QuarantinedKeys, RowKey } from './quarantined-keys.ts';
import { takeRows } from './take-rows.ts';

/** What a batch becomes: the rows that pass, if any, and the dead letters of those that do not. */
export interface Diverted {
  passed: Batch | null;
  /** The batch's row of each row that passes; null where all do. */
  rows: readonly number[] | null;
  letters: DeadLetter[];
}

export interface DivertOptions {
  pipeline: string;
  run: string;
  /** As the source names it. */
  table: string;
  target: string;
  shape: TableShape;
  /** Grows by the keys between which a row moves. */
  keys: QuarantinedKeys;
  nextOrdinal: () => bigint;
  /** What the sink said of a row; null of one that only follows its key. */
  refusalOf: (row: number) => Refusal | null;
  wallMs: () => number;
}

/** Longer images are cut: the change itself is there bit for bit. */
const IMAGE_CHARACTERS_MAX = 65_536;

/** Sets the changes of quarantined keys aside, in order. Without such a key the batch passes as the bytes that it is. */
export function divert(batch: Batch, options: DivertOptions): Diverted {
  const { keys, shape, table, run } = options;
  if (keys.size === 0 || batch.envelope.rows === 0) return { passed: batch, rows: null, letters: [] };
  if (batch.envelope.unchanged !== undefined) {
    const problem = `a batch of ${table} leaves values out, which was not asked for (UNCH-2)`;
    throw new UrutauError('protocol-violation', problem, { table });
  }
  const schema = changeSchema(shape);
  const changes = columnsOf(schema, batch.header, bodyOf(batch));
  const keysOf = changedKeys(changes, shape.primaryKey);
  const letters: DeadLetter[] = [];
  const rows: number[] = [];
  const ops = { c: 0, u: 0, d: 0 };
  for (let row = 0; row < changes.rows; row++) {
    const changed = keysOf(row);
    if (!isQuarantined(changed, keys)) {
      rows.push(row);
      ops[changed.op]++;
      continue;
    }
    const ordinal = options.nextOrdinal();
    for (const key of touched(changed)) keys.add(key, { since: ordinal, run, table, why: MOVED });
    letters.push(letterOf({ batch, schema, changes, row, changed, ordinal }, options));
  }
  if (letters.length === 0) return { passed: batch, rows: null, letters };
  if (rows.length === 0) return { passed: null, rows, letters };
  const { header, body } = takeRows(changes.columns, rows);
  return { passed: batchOf({ ...batch.envelope, rows: rows.length, ops }, header, [body]), rows, letters };
}

const MOVED = 'a row moved between it and a key that is quarantined';

/** The keys of one row of a batch, for one that the sink has refused. */
export function keysOfRow(batch: Batch, shape: TableShape, row: number): RowKey[] {
  const changes = columnsOf(changeSchema(shape), batch.header, bodyOf(batch));
  return touched(changedKeys(changes, shape.primaryKey)(row));
}

function isQuarantined(changed: ChangedKeys, keys: QuarantinedKeys): boolean {
  return touched(changed).some(({ hash }) => keys.has(hash));
}

function touched({ old, now }: ChangedKeys): RowKey[] {
  return [old, now].filter((key) => key !== null);
}

interface LetterOf {
  batch: Batch;
  schema: Schema;
  changes: BatchColumns;
  row: number;
  changed: ChangedKeys;
  ordinal: bigint;
}

function letterOf({ batch, schema, changes, row, changed, ordinal }: LetterOf, options: DivertOptions): DeadLetter {
  const { pipeline, target, keys, refusalOf, wallMs } = options;
  const { columns } = changes;
  const { op, old, now } = changed;
  const key = (now ?? old)!;
  const { code, reason } = refusalOf(row) ?? FOLLOWS;
  const image = rowJson(named(columns, op === 'd' ? 'before' : 'after').children, row);
  const { header, body } = takeRows(columns, [row]);
  const time = named(columns, 'ts_source');
  return {
    pipeline,
    target,
    position: `${placeOf(batch, changes, row)}:${key.hash}`,
    ordinal,
    epoch: keys.epoch,
    key: key.text,
    op,
    commitMicros: isNull(time, row) ? null : viewOf(time.buffers[0]!).getBigInt64(8 * row, true) / 1000n,
    code,
    reason,
    image: image.length > IMAGE_CHARACTERS_MAX ? `${image.slice(0, IMAGE_CHARACTERS_MAX)}…` : image,
    change: asIpcStream(encodeSchemaHeader(schema), header, body),
    quarantinedMicros: BigInt(wallMs()) * 1000n,
  };
}

/**
 * Together with the key it names a change, so that one read again takes the place of the one read before. The ordinal in
 * a chunk means nothing outside of it, and an offset is unique within one process of the source only (CHG-6).
 */
function placeOf({ envelope }: Batch, { columns }: BatchColumns, row: number): string {
  if (envelope.phase === 'snapshot') return 'snapshot';
  return Buffer.from(bytesAt(named(columns, 'offset'), row)).toString('base64');
}

const FOLLOWS: Refusal = { code: 'follows', reason: 'an earlier change of this row was refused' };

function bodyOf({ body }: Batch): Uint8Array {
  return body.length === 1 ? body[0]! : Buffer.concat(body);
}

import { changeSchema, decodeSchemaHeader, fromIpcStream, shapeOfChanges, type TableShape } from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import { type Batch, batchOf } from '../batch.ts';
import { type BatchColumn, type BatchColumns, columnsOf } from './batch-columns.ts';
import { type ChangedKeys, changedKeys } from './change-keys.ts';
import type { DeadLetter } from './dead-letter.ts';
import type { RowKey } from './quarantined-keys.ts';
import { NULL_ROW, takeEach } from './take-rows.ts';

/** What one dead letter does to one key. Of a key only the newest counts: each holds the whole row, or its delete. */
export interface Effect {
  kind: 'upsert' | 'delete';
  key: RowKey;
  letter: DeadLetter;
}

/** One for a change of a row; two where the row moved from one key to another. */
export function effectsOf(letter: DeadLetter): Effect[] {
  const { op, old, now } = keysOf(letter);
  const effects: Effect[] = [];
  if (old && (op === 'd' || old.hash !== now?.hash)) effects.push({ kind: 'delete', key: old, letter });
  if (now) effects.push({ kind: 'upsert', key: now, letter });
  return effects;
}

/** The shape of the rows; the same object for all dead letters of one shape. */
export function shapeOf({ change, target }: DeadLetter): TableShape {
  return openShape(fromIpcStream(change).schemaHeader, target).shape;
}

/** The effect alone, as a change that a sink takes: no other key is touched by it. */
export function effectBatch({ kind, letter }: Effect): Batch {
  const { columns } = changesOf(letter);
  const op = kind === 'upsert' ? 'c' : 'd';
  const taken = columns.map((column) => {
    if (column.field.name === 'op') return { column: opColumn(column, op), picks: [0] };
    const isAbsent = column.field.name === (kind === 'upsert' ? 'before' : 'after');
    return { column, picks: [isAbsent ? NULL_ROW : 0] };
  });
  const { header, body } = takeEach(taken);
  return batchOf({ seq: 0, rows: 1, ops: { [op]: 1 }, phase: 'stream' }, header, [body]);
}

function opColumn({ field }: BatchColumn, op: 'c' | 'd'): BatchColumn {
  const offsets = new Uint8Array(Int32Array.of(0, 1).buffer);
  return { field, length: 1, validity: null, buffers: [offsets, Buffer.from(op)], children: [] };
}

function keysOf(letter: DeadLetter): ChangedKeys {
  const changes = changesOf(letter);
  return changedKeys(changes, changes.shape.primaryKey)(0);
}

function changesOf({ change, target }: DeadLetter): BatchColumns & { shape: TableShape } {
  const { schemaHeader, header, body } = fromIpcStream(change);
  const { schema, shape } = openShape(schemaHeader, target);
  return { ...columnsOf(schema, header, body), shape };
}

/** Schemas are decoded once: a table has few, and many dead letters. */
const opened = new Map<string, { schema: Schema; shape: TableShape }>();
const OPENED_MAX = 64;

function openShape(schemaHeader: Uint8Array, target: string): { schema: Schema; shape: TableShape } {
  const name = `${target}\0${Buffer.from(schemaHeader).toString('latin1')}`;
  let known = opened.get(name);
  if (known === undefined) {
    const shape = shapeOfChanges(decodeSchemaHeader(schemaHeader), target);
    known = { schema: changeSchema(shape), shape };
    if (opened.size >= OPENED_MAX) opened.clear();
    opened.set(name, known);
  }
  return known;
}

import { type ChangeBatch, type Column, isNull } from '@urutau/sdk';
import { appendColumns } from './append-columns.ts';
import { appendRows, type TupleRows, upsertRows } from './change-rows.ts';
import type { Selection } from './field-encoder.ts';
import { RefusedValue } from './refused-value.ts';
import type { TablePlan } from './table-plan.ts';
import { type TupleField, tupleMessage } from './tuple-message.ts';

/** Some rows of a batch, ready for the socket. */
export interface EncodedRows {
  readonly message: Buffer;
  readonly tuples: TupleRows;
}

/** About this much goes into one message: large enough for the socket, small enough for the processor's cache. */
const MESSAGE_BYTES = 256 * 1024;
const MESSAGE_ROWS_MAX = 4096;
/** Room for a delete and an upsert of each row, in this order. */
export const ORDINALS_PER_ROW = 2;

/** The tuples of a batch, piece by piece. Row r has the ordinals `base + 2r` (its delete) and `base + 2r + 1`. */
export function* batchMessages(plan: TablePlan, batch: ChangeBatch, base: number): Generator<EncodedRows> {
  const rowBytes = 32 + batch.byteLength / batch.rows;
  const step = Math.max(1, Math.min(MESSAGE_ROWS_MAX, Math.floor(MESSAGE_BYTES / rowBytes)));
  const extra = plan.mode.kind === 'append' ? appendColumns(batch) : [];
  for (let from = 0; from < batch.rows; from += step) {
    const to = Math.min(batch.rows, from + step);
    const tuples = tuplesOf(plan, batch, from, to);
    if (tuples.count === 0) continue;
    const message =
      plan.mode.kind === 'upsert'
        ? tupleMessage(tuples.count, upsertFields(plan, batch, tuples), {
            ordinal: (tuple) => base + ORDINALS_PER_ROW * tuples.rows[tuple]! + (tuples.deletes[tuple] ? 0 : 1),
            deletes: tuples.deletes,
          })
        : tupleMessage(tuples.count, appendFields(plan, batch, tuples, extra), null);
    yield { message, tuples };
  }
}

function tuplesOf({ mode, key }: TablePlan, batch: ChangeBatch, from: number, to: number): TupleRows {
  return mode.kind === 'upsert' ? upsertRows(batch, key, from, to) : appendRows(batch, mode.onDelete, from, to);
}

/** A delete carries its key alone: what else stands in its before-image is of no use, and NOT NULL does not matter. */
function upsertFields({ columns, key }: TablePlan, batch: ChangeBatch, { after, before }: TupleRows): TupleField[] {
  for (const position of key) {
    refuseNull(batch.after[position]!, after);
    if (before.length > 0) refuseNull(batch.before![position]!, before);
  }
  return columns.map(({ form }, index) => rowField(form, batch, index, after, before, key.includes(index)));
}

/** NULL is like no other NULL: a delete would find no row, and an upsert never the same one again. */
function refuseNull(column: Column, { rows, length }: Selection): void {
  if (column.validity === null) return;
  for (let i = 0; i < length; i++) {
    if (!isNull(column, rows[i]!)) continue;
    throw new RefusedValue(
      column.field.name,
      rows[i]!,
      'the key is NULL, or the source does not send it with the old row',
    );
  }
}

function appendFields(
  { columns, key, before: image, oldColumns }: TablePlan,
  batch: ChangeBatch,
  tuples: TupleRows,
  extra: readonly Column[],
): TupleField[] {
  const { after, before } = tuples;
  const all = everyTuple(tuples);
  const [withOld, withoutOld] = byBeforeImage(batch, tuples);
  return [
    ...columns.map(({ form }, index) =>
      rowField(form, batch, index, after, before, image === 'full' || key.includes(index)),
    ),
    ...extra.map((column): TupleField => {
      return {
        form: column.kind === 'timestamptz' ? 'timestamp' : 'text',
        parts: [{ column, selection: all }],
        nulls: [],
      };
    }),
    ...oldColumns.map((index): TupleField => {
      return {
        form: columns[index]!.form,
        parts: [{ column: batch.before![index]!, selection: withOld }],
        nulls: [withoutOld],
      };
    }),
  ];
}

/** A column of the row: from the image after the change, and for deletes from the one before where that holds it. */
function rowField(
  form: TupleField['form'],
  batch: ChangeBatch,
  index: number,
  after: Selection,
  before: Selection,
  isInBefore: boolean,
): TupleField {
  const parts = [{ column: batch.after[index]!, selection: after }];
  if (before.length === 0) return { form, parts, nulls: [] };
  if (!isInBefore) return { form, parts, nulls: [before] };
  return { form, parts: [...parts, { column: batch.before![index]!, selection: before }], nulls: [] };
}

function everyTuple({ count, rows }: TupleRows): Selection {
  return { rows, tuples: Int32Array.from({ length: count }, (_, tuple) => tuple), length: count };
}

function byBeforeImage(batch: ChangeBatch, { count, rows }: TupleRows): [with_: Selection, without: Selection] {
  const tuples = Array.from({ length: count }, (_, tuple) => tuple);
  const select = (has: boolean): Selection => {
    const chosen = Int32Array.from(tuples.filter((tuple) => batch.hasBefore(rows[tuple]!) === has));
    return { rows: chosen.map((tuple) => rows[tuple]!), tuples: chosen, length: chosen.length };
  };
  return [select(true), select(false)];
}

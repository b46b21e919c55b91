import type { ChangeBatch, Column } from '@urutau/sdk';
import { Field, TimestampMicrosecond, Utf8 } from 'apache-arrow';
import type { ColumnPlan } from './column-plan.ts';

/** Goes before the name of a column to name its value before the change. */
export const OLD_PREFIX = '_old_';

/** What an append table keeps of each change beside the row, in this order. */
export const APPEND_COLUMNS: readonly ColumnPlan[] = [
  { name: '_urutau_op', form: 'text', stageType: 'text', cast: null },
  { name: '_urutau_position', form: 'text', stageType: 'text', cast: null },
  { name: '_urutau_commit_ts', form: 'timestamp', stageType: 'timestamp with time zone', cast: null },
  { name: '_urutau_phase', form: 'text', stageType: 'text', cast: null },
];

/** The values of APPEND_COLUMNS for every row of a batch. */
export function appendColumns(batch: ChangeBatch): Column[] {
  const { rows } = batch;
  const phase = batch.envelope.phase ?? 'stream';
  return [
    textColumn('_urutau_op', rows, (row) => batch.op(row)),
    textColumn('_urutau_position', rows, (row) => Buffer.from(batch.offset(row)).toString('hex')),
    commitTimes(batch),
    textColumn('_urutau_phase', rows, () => phase),
  ];
}

function textColumn(name: string, rows: number, textOf: (row: number) => string): Column {
  const offsets = new Int32Array(rows + 1);
  const parts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const value = textOf(row);
    parts.push(value);
    offsets[row + 1] = offsets[row]! + value.length;
  }
  const field = new Field(name, new Utf8());
  return {
    kind: 'string',
    field,
    length: rows,
    nullCount: 0,
    validity: null,
    offsets,
    bytes: Buffer.from(parts.join(''), 'latin1'),
  };
}

/** The server keeps microseconds; the parts of one that the wire can carry are cut off, towards the past. */
function commitTimes(batch: ChangeBatch): Column {
  const { rows } = batch;
  const values = new BigInt64Array(rows);
  const validity = new Uint8Array((rows + 7) >> 3);
  for (let row = 0; row < rows; row++) {
    const nanos = batch.tsSourceNanos(row);
    if (nanos === null) continue;
    validity[row >> 3]! |= 1 << (row & 7);
    values[row] = (nanos - (((nanos % 1000n) + 1000n) % 1000n)) / 1000n;
  }
  const field = new Field('_urutau_commit_ts', new TimestampMicrosecond('UTC'), true);
  const halves = new Uint32Array(values.buffer);
  return {
    kind: 'timestamptz',
    field,
    length: rows,
    nullCount: 0,
    validity,
    unitsPerSecond: 1_000_000n,
    values,
    halves,
  };
}

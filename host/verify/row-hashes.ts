import type { RecordBatch } from 'apache-arrow';
import type { ColumnPair } from './column-pairs.ts';
import { foldColumn } from './fold-column.ts';
import { Lanes } from './lanes.ts';

export type Side = 'source' | 'destination';

/** Of each row of a batch: which key it has, and what the whole row holds. */
export interface RowHashes {
  readonly key: Lanes;
  readonly row: Lanes;
}

const KEY_SEED = 0x5bd1e995;
const COLUMN_SEED = 0x2545f491;

/** Equal rows have equal hashes on both sides, whatever types hold their values. The pairs of the key come first. */
export function hashRows(batch: RecordBatch, pairs: readonly ColumnPair[], side: Side): RowHashes {
  const lanes = new Lanes(batch.numRows, KEY_SEED);
  const isKey = ({ key }: ColumnPair) => key;
  for (const pair of pairs.filter(isKey)) foldColumn(batch.data.children[pair[side]]!, pair.form, lanes);
  const key = Lanes.from(lanes).finish();
  for (const pair of pairs) if (!isKey(pair)) foldColumn(batch.data.children[pair[side]]!, pair.form, lanes);
  return { key, row: lanes.finish() };
}

/** Of each row: a number that changes with its version. */
export function hashVersions(batch: RecordBatch, place: number): Int32Array {
  const lanes = new Lanes(batch.numRows, COLUMN_SEED);
  foldColumn(batch.data.children[place]!, 'as-is', lanes);
  return lanes.finish().first;
}

/** The hash of each column of one row, two words each, in the order of the pairs: to find out in which two rows differ. */
export function hashColumns(batch: RecordBatch, row: number, pairs: readonly ColumnPair[], side: Side): Int32Array {
  const hashes = new Int32Array(2 * pairs.length);
  for (const [place, pair] of pairs.entries()) {
    const lanes = new Lanes(1, COLUMN_SEED);
    foldColumn(batch.data.children[pair[side]]!.slice(row, 1), pair.form, lanes);
    lanes.finish();
    hashes[2 * place] = lanes.first[0]!;
    hashes[2 * place + 1] = lanes.second[0]!;
  }
  return hashes;
}

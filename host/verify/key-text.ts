import type { RecordBatch } from 'apache-arrow';
import { canonicalText } from './canonical-text.ts';
import type { ColumnPair } from './column-pairs.ts';
import type { Side } from './row-hashes.ts';

/** A row's key as people read it: `order_id=7, line=2`. */
export function keyText(batch: RecordBatch, row: number, pairs: readonly ColumnPair[], side: Side): string {
  return pairs
    .filter(({ key }) => key)
    .map((pair) => `${pair.name}=${canonicalText(batch.data.children[pair[side]]!.slice(row, 1), 'text')(0)}`)
    .join(', ');
}

import type { RecordBatch } from 'apache-arrow';
import { canonicalText } from './canonical-text.ts';
import type { ColumnPair } from './column-pairs.ts';
import type { Side } from './row-hashes.ts';

/** A row's key as people read it: `order_id=7, line=2`; a text that could be misread, or that would break the line, in quotes. */
export function keyText(batch: RecordBatch, row: number, pairs: readonly ColumnPair[], side: Side): string {
  return pairs
    .filter(({ key }) => key)
    .map((pair) => {
      const text = canonicalText(batch.data.children[pair[side]]!.slice(row, 1), 'text')(0);
      return `${pair.name}=${text === null ? 'null' : quoted(text)}`;
    })
    .join(', ');
}

function quoted(text: string): string {
  if (!/^$|^null$|^\s|\s$|, |["\p{Cc}]/u.test(text)) return text;
  return JSON.stringify(text).replace(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
}

import { UrutauError } from '@urutau/contract';
import { type BatchColumn, type BatchColumns, bytesAt, isNull } from './batch-columns.ts';
import { keyOf, type RowKey } from './quarantined-keys.ts';

export type Op = 'c' | 'u' | 'd';

/** Which keys a change touches. `old` is there for a delete and for an update that names the row as it was. */
export interface ChangedKeys {
  op: Op;
  old: RowKey | null;
  /** Null for a delete. */
  now: RowKey | null;
}

/** Tells the keys of each row of a batch of changes. */
export function changedKeys({ columns }: BatchColumns, primaryKey: readonly string[]): (row: number) => ChangedKeys {
  const op = named(columns, 'op');
  const after = named(columns, 'after');
  const before = columns.find(({ field }) => field.name === 'before');
  const keyColumns = ({ children }: BatchColumn) => primaryKey.map((name) => named(children, name));
  const afterKey = keyColumns(after);
  const beforeKey = before && keyColumns(before);
  return (row) => {
    const letter = Buffer.from(bytesAt(op, row)).toString();
    if (letter !== 'c' && letter !== 'u' && letter !== 'd') {
      const came = JSON.stringify(letter);
      throw new UrutauError('protocol-violation', `expected op c, u or d; came ${came} (CHG-5)`, { row });
    }
    return {
      op: letter,
      old: letter === 'c' || !before || isNull(before, row) ? null : keyOf(beforeKey!, row),
      now: letter === 'd' ? null : keyOf(afterKey, row),
    };
  };
}

export function named(columns: readonly BatchColumn[], name: string): BatchColumn {
  const found = columns.find(({ field }) => field.name === name);
  if (found) return found;
  throw new UrutauError('protocol-violation', `a batch of changes has no column ${name}`, { column: name });
}

import type { CatalogTable } from '../source/catalog.ts';
import { type RowShape, rowShape } from '../source/row-shape.ts';
import { type ColumnFacts, OID, typeOf } from '../types.ts';

/** The rows of a target. A column that no kind holds is read in the server's own text form: any type can be written so. */
export function readableShape({ columns, key }: CatalogTable): RowShape {
  const asText = columns.map((column) => 'unsupported' in typeOf(column));
  const readable = rowShape(
    columns.map((column, i) => (asText[i] ? { ...column, ...TEXT } : column)),
    key,
    'key',
  );
  return {
    ...readable,
    shape: { ...readable.shape, before: 'none' },
    types: readable.types.map((type, i) => ({ ...type, copyAsText: type.copyAsText || asText[i]! })),
  };
}

/** `formatted` stays that of the column. */
const TEXT: Omit<ColumnFacts, 'column' | 'formatted' | 'notNull' | 'key'> = {
  oid: OID.text,
  typmod: -1,
  name: 'text',
  type: 'b',
  category: 'S',
  base: null,
};

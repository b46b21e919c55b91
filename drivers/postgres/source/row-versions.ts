import { METADATA } from '@urutau/sdk';
import { Field, Utf8 } from 'apache-arrow';
import { OID } from '../types.ts';
import type { RowShape } from './row-shape.ts';

/**
 * The shape with one more column: the transaction that wrote the row (SCH-10). What one transaction writes is seen at
 * once, so it names the version; no column of a table can have its name.
 */
export function withRowVersions({ shape, columns, types, ...rest }: RowShape): RowShape {
  const text = { oid: OID.text, typmod: -1, name: 'text', type: 'b', category: 'S', base: null };
  const column = { column: 'xmin', formatted: 'xid', notNull: true, key: false, ...text };
  const field = new Field('xmin', new Utf8(), true, new Map([[METADATA.rowVersion, 'true']]));
  return {
    ...rest,
    shape: { ...shape, fields: [...shape.fields, field] },
    columns: [...columns, column],
    types: [...types, { kind: 'string', sourceType: 'xid', baseOid: OID.text, copyAsText: true }],
  };
}

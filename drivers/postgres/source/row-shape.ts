import { createHash } from 'node:crypto';
import type { TableShape } from '@urutau/sdk';
import { type ColumnFacts, fieldFor, type SupportedType, typeOf } from '../types.ts';
import type { CatalogTable } from './catalog.ts';
import type { RelationMessage } from './pgoutput.ts';

/** The rows of a table between two changes of its shape. */
export interface RowShape {
  shape: TableShape;
  columns: readonly ColumnFacts[];
  /** Of each column. */
  types: readonly SupportedType[];
  /** Places of the key's columns, in key order. */
  keyIndexes: readonly number[];
  /** Equal for two shapes whose rows are decoded alike. */
  signature: string;
}

/** Throws `type-unsupported` for the first column that has no kind. */
export function rowShape(columns: readonly ColumnFacts[], key: readonly string[], before: 'key' | 'full'): RowShape {
  const fields = columns.map(fieldFor);
  const signature = signatureOf(
    before,
    columns.map(({ column, oid, typmod, key: isKey }) => ({ name: column, typeOid: oid, typmod, key: isKey })),
  );
  const schemaId = createHash('sha256').update(signature).update(JSON.stringify(key)).digest('hex').slice(0, 16);
  return {
    shape: { fields, primaryKey: [...key], before, schemaId },
    columns,
    types: columns.map((column) => typeOf(column) as SupportedType),
    keyIndexes: key.map((name) => columns.findIndex(({ column }) => column === name)),
    signature,
  };
}

export function shapeOfTable({ columns, key, replicaIdentity }: CatalogTable): RowShape {
  return rowShape(columns, key, replicaIdentity === 'f' ? 'full' : 'key');
}

/** The signature that a Relation message stands for: another one than the shape's means that the shape has changed. */
export function signatureOfRelation({ replicaIdentity, columns }: RelationMessage): string {
  return signatureOf(replicaIdentity === 'full' ? 'full' : 'key', columns);
}

/**
 * The shape that a Relation message announces. It tells which columns are the key but not their order, and under FULL
 * not even that, so the catalog's key helps: it may be newer than the message, and then only what fits is taken.
 */
export function shapeOfRelation(
  { replicaIdentity, columns }: RelationMessage,
  facts: readonly Omit<ColumnFacts, 'key'>[],
  catalogKey: readonly string[],
): RowShape {
  const full = replicaIdentity === 'full';
  const flagged = columns.filter(({ key }) => key).map(({ name }) => name);
  const fits = catalogKey.length > 0 && catalogKey.every((name) => flagged.includes(name));
  const key = fits && (full || flagged.length === catalogKey.length) ? catalogKey : full ? [] : flagged;
  return rowShape(
    facts.map((column) => ({ ...column, key: key.includes(column.column) })),
    key,
    full ? 'full' : 'key',
  );
}

function signatureOf(
  before: 'key' | 'full',
  columns: readonly { name: string; typeOid: number; typmod: number; key: boolean }[],
): string {
  // Under FULL the server flags every column, so the flags say nothing there.
  return JSON.stringify([
    before,
    columns.map(({ name, typeOid, typmod, key }) => [name, typeOid, typmod, before === 'key' && key]),
  ]);
}

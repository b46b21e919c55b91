import pg from 'pg';
import { splitName } from '../connection.ts';
import type { ColumnFacts } from '../types.ts';

/** Runs one SQL text; every value as the server's text. */
export type Query = (sql: string) => Promise<(string | null)[][]>;

/** What the catalog says of one table. */
export interface CatalogTable {
  /** `schema.table` */
  table: string;
  oid: number;
  /** pg_class.relkind: r is an ordinary table, p a partitioned one. */
  kind: string;
  /** A partition of another table. */
  partition: boolean;
  /** pg_class.relpersistence: only p(ermanent) tables are in the log. */
  persistence: string;
  /** pg_class.relreplident: d(efault), n(othing), f(ull), i(ndex). */
  replicaIdentity: string;
  /** Of the planner; null when never analyzed. */
  estimatedRows: number | null;
  canSelect: boolean;
  /** Row-level security applies to the user. */
  hidesRows: boolean;
  /** The user owns the table, which a publication asks for. */
  owns: boolean;
  /** All columns but generated ones, which are not in the log. */
  columns: ColumnFacts[];
  /**
   * The columns that identify a row, in the order of their index: the replica identity's, else the primary key's. A
   * deferrable key is none: two rows may hold the same one between two changes, and the log does not name rows by it.
   */
  key: string[];
}

/** By their full names; a table that is not there is not in the answer. */
export async function loadTables(query: Query, tables: readonly string[]): Promise<Map<string, CatalogTable>> {
  if (tables.length === 0) return new Map();
  const names = tables.map((table) => {
    const { schema, name } = splitName(table);
    return `(${pg.escapeLiteral(schema)}, ${pg.escapeLiteral(name)}, ${pg.escapeLiteral(table)})`;
  });
  const rows = await query(`
    SELECT json_build_object('table', w.full_name, ${TABLE_FIELDS})
    FROM (VALUES ${names.join(', ')}) w(schema, name, full_name)
    JOIN pg_namespace n ON n.nspname = w.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name`);
  return new Map(rows.map(([json]) => toTable(json!)).map((table) => [table.table, table]));
}

/** All that can be replicated and read by the user: no partitions, they are part of their table. */
export async function listTables(query: Query): Promise<CatalogTable[]> {
  const rows = await query(`
    SELECT json_build_object('table', n.nspname || '.' || c.relname, ${TABLE_FIELDS})
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
      AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname, c.relname`);
  return rows.map(([json]) => toTable(json!));
}

/** What the catalog says of the columns of a Relation message, which has only their names and types. */
export async function columnFactsOf(
  query: Query,
  relationOid: number,
  columns: readonly { name: string; typeOid: number; typmod: number }[],
): Promise<Omit<ColumnFacts, 'key'>[]> {
  const wanted = columns.map(
    ({ name, typeOid, typmod }, i) => `(${i}, ${pg.escapeLiteral(name)}, ${typeOid}::oid, ${typmod})`,
  );
  const rows = await query(`
    SELECT json_build_object(${columnFields('w.name', 'w.typmod', 'coalesce(a.attnotnull, false)')})
    FROM (VALUES ${wanted.join(', ')}) w(n, name, oid, typmod)
    JOIN pg_type t ON t.oid = w.oid
    LEFT JOIN pg_attribute a ON a.attrelid = ${relationOid}::oid AND a.attname = w.name AND NOT a.attisdropped
    ORDER BY w.n`);
  return rows.map(([json]) => JSON.parse(json!));
}

/** The key's columns of a table, by its oid, whatever its name is now. */
export async function loadKey(query: Query, oid: number): Promise<string[]> {
  const rows = await query(`SELECT ${KEY} FROM pg_class c WHERE c.oid = ${oid}::oid`);
  return JSON.parse(rows[0]?.[0] ?? '[]');
}

/** The table that a partition belongs to in the end, by their oids; null for what is none. */
export async function loadRoot(query: Query, oid: number): Promise<number | null> {
  const [row] = await query(`SELECT pg_partition_root(${oid}::oid)::oid`);
  return row?.[0] ? Number(row[0]) : null;
}

/** Which tables still have the name that they were assigned under. */
export async function presentTables(query: Query, oids: readonly number[]): Promise<Map<number, string>> {
  const rows = await query(`
    SELECT c.oid, n.nspname || '.' || c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN (${oids.map(String).join(', ')})`);
  return new Map(rows.map(([oid, name]) => [Number(oid), name!]));
}

function toTable(json: string): CatalogTable {
  const { columns, key, ...table } = JSON.parse(json) as CatalogTable & {
    columns: Omit<ColumnFacts, 'key'>[] | null;
    key: string[] | null;
  };
  const keyColumns = key ?? [];
  return {
    ...table,
    estimatedRows: table.estimatedRows !== null && table.estimatedRows >= 0 ? Math.round(table.estimatedRows) : null,
    key: keyColumns,
    columns: (columns ?? []).map((column) => ({ ...column, key: keyColumns.includes(column.column) })),
  };
}

/** Fields of TypeFacts from a pg_type row `alias`, with the typmod of where it is used. */
function typeFields(alias: string, typmod: string): string {
  return `'oid', ${alias}.oid::int8, 'typmod', ${typmod}, 'name', ${alias}.typname, 'type', ${alias}.typtype,
    'category', ${alias}.typcategory`;
}

/** A domain may stand on domains; the innermost one may bring a typmod. */
const DOMAIN_BASE = `
  CASE WHEN t.typtype = 'd' THEN (
    WITH RECURSIVE d(depth, oid, typmod) AS (
      SELECT 1, t.typbasetype, t.typtypmod
      UNION ALL
      SELECT d.depth + 1, b.typbasetype, b.typtypmod FROM d JOIN pg_type b ON b.oid = d.oid WHERE b.typtype = 'd')
    SELECT json_build_object(${typeFields('b', 'd.typmod')})
    FROM d JOIN pg_type b ON b.oid = d.oid ORDER BY d.depth DESC LIMIT 1) END`;

function columnFields(name: string, typmod: string, notNull: string): string {
  return `'column', ${name}, ${typeFields('t', typmod)}, 'base', ${DOMAIN_BASE},
    'formatted', format_type(t.oid, ${typmod}), 'notNull', ${notNull}`;
}

const COLUMNS = `(
  SELECT json_agg(json_build_object(${columnFields('a.attname', 'a.atttypmod', 'a.attnotnull')}) ORDER BY a.attnum)
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')`;

const KEY = `(
  SELECT json_agg(a.attname ORDER BY k.n)
  FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k(attnum, n), pg_attribute a
  WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
    AND i.indimmediate AND i.indisvalid AND k.n <= i.indnkeyatts AND a.attrelid = c.oid AND a.attnum = k.attnum)`;

const TABLE_FIELDS = `
  'oid', c.oid::int8, 'kind', c.relkind, 'partition', c.relispartition, 'persistence', c.relpersistence,
  'replicaIdentity', c.relreplident,
  'estimatedRows', CASE WHEN c.relkind = 'p' THEN (
      SELECT sum(l.reltuples) FROM pg_partition_tree(c.oid) p JOIN pg_class l ON l.oid = p.relid
      WHERE p.isleaf AND l.reltuples >= 0) WHEN c.reltuples >= 0 THEN c.reltuples END,
  'canSelect', has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
  'hidesRows', row_security_active(c.oid),
  'owns', pg_has_role(c.relowner, 'USAGE'),
  'columns', ${COLUMNS}, 'key', ${KEY}`;

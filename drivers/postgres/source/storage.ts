import pg from 'pg';
import { quoteName } from '../connection.ts';
import type { Query } from './catalog.ts';
import type { Leaf } from './page-range.ts';
import type { LeafFacts } from './preflight.ts';

/** The files that a table's rows are in, as they are now (not as a snapshot saw them), in the order of their oids. */
export async function loadLeaves(query: Query, table: string): Promise<(Leaf & { name: string })[]> {
  const rows = await query(`
    SELECT c.oid::int8, coalesce(pg_relation_filenode(c.oid), 0)::int8,
      pg_relation_size(c.oid) / current_setting('block_size')::int8,
      CASE WHEN c.reltuples > 0 AND c.relpages > 0 THEN c.reltuples / c.relpages END,
      format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN (${leavesOf(table)}) ORDER BY c.oid`);
  return rows.map(([oid, fileNode, pages, rowsPerPage, name]) => ({
    oid: Number(oid),
    fileNode: Number(fileNode),
    pages: Number(pages),
    rowsPerPage: Math.max(1, Number(rowsPerPage ?? ROWS_PER_PAGE_GUESS)),
    name: name!,
  }));
}

/** The partitions of a partitioned table that hold rows, for the checks before a start. */
export async function loadLeafFacts(query: Query, table: string): Promise<LeafFacts[]> {
  const rows = await query(`
    SELECT json_build_object('table', n.nspname || '.' || c.relname, 'kind', c.relkind,
      'persistence', c.relpersistence, 'replicaIdentity', c.relreplident,
      'canSelect', has_table_privilege(c.oid, 'SELECT'), 'hidesRows', row_security_active(c.oid))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN (${leavesOf(table)}) ORDER BY c.oid`);
  return rows.map(([json]) => JSON.parse(json!));
}

const ROWS_PER_PAGE_GUESS = 80;

function leavesOf(table: string): string {
  const oid = `${pg.escapeLiteral(quoteName(table))}::regclass`;
  return `SELECT p.relid FROM pg_partition_tree(${oid}) p JOIN pg_class l ON l.oid = p.relid
    WHERE p.isleaf AND l.relkind <> 'p' AND (SELECT relkind FROM pg_class WHERE oid = ${oid}) = 'p'
    UNION SELECT oid FROM pg_class WHERE oid = ${oid} AND relkind <> 'p'`;
}

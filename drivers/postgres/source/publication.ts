import pg from 'pg';
import { quoteIdent, quoteName } from '../connection.ts';
import type { Query } from './catalog.ts';

export interface Publication {
  /** Made by this driver; only such a one is altered or dropped. */
  ours: boolean;
  /** The slot was made by this driver too. */
  slotOurs: boolean;
  /** Partitioned tables are published under their own name. */
  viaRoot: boolean;
  /** It publishes generated columns, which a snapshot would not read. */
  generatedColumns: boolean;
  /** Operations that it leaves out. */
  missingOperations: string[];
  tables: PublishedTable[];
}

export interface PublishedTable {
  table: string;
  /** It has a row filter, or a list of other columns than those that a table has in the log. */
  partial: boolean;
}

/** Null when there is none of that name. */
export async function loadPublication(query: Query, name: string): Promise<Publication | null> {
  const [row] = await query(`
    SELECT json_build_object(
      'comment', obj_description(p.oid, 'pg_publication'),
      'viaRoot', p.pubviaroot,
      'generatedColumns', coalesce(to_jsonb(p) ->> 'pubgencols', 'n') NOT IN ('n', 'false'),
      'operations', json_build_object('insert', p.pubinsert, 'update', p.pubupdate, 'delete', p.pubdelete, 'truncate', p.pubtruncate),
      'tables', (SELECT json_agg(json_build_object('table', t.schemaname || '.' || t.tablename, 'partial', ${PARTIAL}))
                 FROM pg_publication_tables t WHERE t.pubname = p.pubname))
    FROM pg_publication p WHERE p.pubname = ${pg.escapeLiteral(name)}`);
  if (!row) return null;
  const { comment, viaRoot, generatedColumns, operations, tables } = JSON.parse(row[0]!);
  return {
    ours: comment === COMMENT || comment === COMMENT_WITH_SLOT,
    slotOurs: comment === COMMENT_WITH_SLOT,
    viaRoot,
    generatedColumns,
    missingOperations: Object.keys(operations).filter((operation) => !operations[operation]),
    tables: tables ?? [],
  };
}

/** Makes our publication hold exactly `tables`, in one transaction. Answers which ones it did not hold before. */
export async function syncPublication(
  query: Query,
  name: string,
  tables: readonly string[],
  existing: Publication | null,
): Promise<string[]> {
  const published = new Set(existing?.tables.map(({ table }) => table));
  const added = tables.filter((table) => !published.has(table));
  if (existing === null) {
    if (tables.length === 0) return [];
    await query(`${BRIEF_LOCKS}; CREATE PUBLICATION ${quoteIdent(name)} FOR TABLE ${publicationList(tables)}
      WITH (publish = 'insert, update, delete, truncate', publish_via_partition_root = true);
      COMMENT ON PUBLICATION ${quoteIdent(name)} IS ${pg.escapeLiteral(COMMENT)}`);
  } else if (added.length > 0 || published.size !== tables.length) {
    // SET keeps what is in both sets as it is, so a table that stays misses nothing.
    const change =
      tables.length > 0 ? `SET TABLE ${publicationList(tables)}` : `DROP TABLE ${publicationList([...published])}`;
    await query(`${BRIEF_LOCKS}; ALTER PUBLICATION ${quoteIdent(name)} ${change}`);
  }
  return added;
}

/** Remembers in the publication that the slot beside it is ours, for `teardown`: a slot has no place for a mark. */
export async function markSlotOurs(query: Query, name: string): Promise<void> {
  await query(`COMMENT ON PUBLICATION ${quoteIdent(name)} IS ${pg.escapeLiteral(COMMENT_WITH_SLOT)}`);
}

/** Statements of one text are one transaction. A vacuum that holds a table must not make the whole start wait. */
const BRIEF_LOCKS = "SELECT set_config('lock_timeout', '10s', true)";

const COMMENT = 'made by urutau-host';
const COMMENT_WITH_SLOT = 'made by urutau-host, with its slot';

/** Column lists and row filters came with version 15, and the view's columns with them: older ones have neither. */
const PARTIAL = `(to_jsonb(t) ->> 'rowfilter') IS NOT NULL
  OR jsonb_array_length(coalesce(to_jsonb(t) -> 'attnames', '[]')) <> CASE WHEN to_jsonb(t) ? 'attnames' THEN (
    SELECT count(*) FROM pg_attribute a WHERE a.attrelid = format('%I.%I', t.schemaname, t.tablename)::regclass
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') ELSE 0 END`;

/** ONLY: tables that inherit from one of them are others, and publishing one that has no key breaks its updates. */
export function publicationList(tables: readonly string[]): string {
  return tables.map((table) => `ONLY ${quoteName(table)}`).join(', ');
}

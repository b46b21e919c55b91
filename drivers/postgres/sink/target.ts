import type pg from 'pg';
import type { TargetName } from './config.ts';

/** A column of the target as far as it decides what can be written to it. */
export interface TargetColumn {
  readonly name: string;
  /** The server's own type (a domain's base), the name of an extension's type, or `enum`. */
  readonly type: string;
  /** The type with its modifiers as the server writes it: `character varying(20)`. */
  readonly formatted: string;
  readonly notNull: boolean;
  readonly hasDefault: boolean;
  readonly generated: boolean;
  /** GENERATED ALWAYS AS IDENTITY: an UPDATE may not set it. */
  readonly identityAlways: boolean;
}

/** A table that exists. */
export interface Target {
  readonly oid: number;
  readonly columns: ReadonlyMap<string, TargetColumn>;
  /** Column sets of the unique indexes that ON CONFLICT can name. */
  readonly uniqueKeys: readonly (readonly string[])[];
  /** Null when rows can be written; else why not, such as that it is a view. */
  readonly notATable: string | null;
  /** Of SELECT, INSERT, UPDATE, DELETE: what the user may not. */
  readonly missingGrants: readonly string[];
}

/** Null when there is no such table. */
export async function loadTarget(client: pg.ClientBase, { schema, table }: TargetName): Promise<Target | null> {
  const { rows } = await client.query(TABLE_SQL, [schema, table]);
  if (rows.length === 0) return null;
  const [{ oid, relkind, grants }] = rows;
  const columns = await client.query(COLUMNS_SQL, [oid]);
  const keys = await client.query(UNIQUE_SQL, [oid]);
  return {
    oid,
    columns: new Map(columns.rows.map((row): [string, TargetColumn] => [row.name, row])),
    uniqueKeys: keys.rows.map((row) => row.columns),
    notATable: relkind === 'r' || relkind === 'p' ? null : (RELATION_KINDS[relkind] ?? 'another kind of relation'),
    missingGrants: PRIVILEGES.filter((_, index) => !grants[index]),
  };
}

/** The type that `text` names in this database, as an existing column of it would look; null when there is none. */
export async function resolveType(
  client: pg.ClientBase,
  text: string,
): Promise<Pick<TargetColumn, 'type' | 'formatted'> | null> {
  // The server's own parser takes the whole text as one type name or refuses it, so that nothing else can hide in it;
  // a comment is the one thing that its parser would skip.
  if (text.includes('--') || text.includes('/*')) return null;
  try {
    const { rows } = await client.query(
      `select ${TYPE_SQL} as type from pg_type t ${BASE_JOIN} where t.oid = to_regtype($1)`,
      [text],
    );
    return rows.length === 0 ? null : { type: rows[0].type, formatted: text };
  } catch (error) {
    // Servers before 16 raise what later ones answer with NULL.
    if ((error as { code?: string }).code?.startsWith('42')) return null;
    throw error;
  }
}

const PRIVILEGES = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

const RELATION_KINDS: Record<string, string> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
  S: 'a sequence',
};

const TABLE_SQL = `
  select c.oid, c.relkind,
         array[${PRIVILEGES.map((privilege) => `has_table_privilege(c.oid, '${privilege}')`).join(', ')}] as grants
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = $1 and c.relname = $2 and c.relkind not in ('i', 'I', 't')`;

const BASE_JOIN = `join pg_type b on b.oid = case when t.typtype = 'd' then t.typbasetype else t.oid end`;

/** Only the server's own names mean what they say; an array is named by its element with brackets. */
const TYPE_SQL = `case when b.typtype = 'e' then 'enum'
       when b.typcategory = 'A' then 'array'
       when b.typnamespace = 'pg_catalog'::regnamespace or b.typname = 'citext' then b.typname
       else 'other' end`;

const COLUMNS_SQL = `
  select a.attname as name, ${TYPE_SQL} as type,
         format_type(b.oid, case when t.typtype = 'd' then t.typtypmod else a.atttypmod end) as formatted,
         a.attnotnull or t.typnotnull as "notNull", a.atthasdef or t.typdefault is not null or a.attidentity <> '' as "hasDefault",
         a.attgenerated <> '' as generated, a.attidentity = 'a' as "identityAlways"
    from pg_attribute a join pg_type t on t.oid = a.atttypid ${BASE_JOIN}
   where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
   order by a.attnum`;

const UNIQUE_SQL = `
  select array(select a.attname::text from unnest(i.indkey[0:i.indnkeyatts - 1]) k join pg_attribute a
                on a.attrelid = i.indrelid and a.attnum = k) as columns
    from pg_index i
   where i.indrelid = $1 and i.indisunique and i.indisvalid and i.indimmediate
     and i.indpred is null and i.indexprs is null`;

import type pg from 'pg';
import type { RowImage } from '../compare.ts';
import { type Column, FINGERPRINT_DIGITS, type OracleTable } from '../tables.ts';

const FETCH_ROWS = 5_000;
/** The first piece comes when all payloads were read and the rows sorted. */
const FETCH_MS_MAX = 3_600_000;
/** Types of the client do not know its own setting. */
const FETCH: pg.QueryConfig & { query_timeout: number } = {
  text: `fetch ${FETCH_ROWS} from oracle_rows`,
  query_timeout: FETCH_MS_MAX,
};

/**
 * All rows in the order of their keys, as of one moment, a few thousand at a time. Indexes are not used: one that is
 * damaged would hide a row that is there twice.
 */
export async function* readRows(client: pg.Client, relation: string, table: OracleTable): AsyncGenerator<RowImage> {
  const keys = table.key.map(({ name }, index) => `${name}::text as k${index}`);
  const order = table.key.map(({ name, kind }) => (kind === 'text' ? `${name} collate "C"` : name));
  const image = `left(md5(${table.columns.map(canonical).join(` || ',' || `)}), ${FINGERPRINT_DIGITS})`;
  await client.query('begin isolation level repeatable read read only');
  try {
    await client.query(
      `set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off`,
    );
    await client.query(
      `declare oracle_rows no scroll cursor for
       select ${keys.join(', ')}, rev::text, ${image} as image from ${relation} order by ${order.join(', ')}`,
    );
    for (;;) {
      const { rows } = await client.query(FETCH);
      for (const row of rows) {
        const parts = keys.map((_, index) => row[`k${index}`] as string);
        yield { code: table.codeOf(parts), rev: Number(row.rev), image: Number.parseInt(row.image, 16) };
      }
      if (rows.length < FETCH_ROWS) return;
    }
  } finally {
    // A connection that broke has reported by itself.
    await client.query('rollback').catch(() => {});
  }
}

/** The form of `imageOf`. */
function canonical({ name, kind }: Column): string {
  const text = textOf(name, kind);
  return `coalesce(octet_length(${text}) || ':' || ${text}, '~')`;
}

function textOf(name: string, kind: Column['kind']): string {
  switch (kind) {
    case 'instant':
      return `(extract(epoch from ${name}) * 1000000)::bigint::text`;
    case 'payload':
      return `left(md5(${name}), ${FINGERPRINT_DIGITS})`;
    default:
      return `${name}::text`;
  }
}

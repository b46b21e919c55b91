// The table of the benchmark, how it is filled, and how its content is compared.
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';

export const TABLE = 'public.bench_rows';
export const PUBLICATION = 'bench_pub';

const COLUMNS = ['id', 'qty', 'note', 'price', 'at', 'ok', 'uid', 'doc', 'day', 'score'];

const CREATE = `
  CREATE TABLE bench_rows (
    id bigint PRIMARY KEY, qty int NOT NULL, note text NOT NULL, price numeric(12,2) NOT NULL,
    at timestamptz NOT NULL, ok boolean NOT NULL, uid uuid NOT NULL, doc jsonb NOT NULL,
    day date NOT NULL, score double precision NOT NULL)`;

/** Rows from..to, the same for everybody who asks. */
const ROWS = `
  SELECT i, ((i * 7919) % 100000)::int,
         left(md5(i::text) || md5((i + 1)::text), 30 + (i % 31)::int),
         ((i % 1000000) * 1.37)::numeric(12,2),
         timestamptz '2026-01-01 00:00:00+00' + i * interval '1.000123 seconds',
         i % 3 = 0, md5(i::text)::uuid,
         jsonb_build_object('k', i % 100, 'name', 'user ' || i, 'tags', jsonb_build_array('a', 'b', i % 7)),
         date '2020-01-01' + (i % 2000)::int, i * 1.000123
  FROM generate_series`;

/** Inserts rows 1..total in transactions of \`per\`. */
const LOAD = `
  CREATE PROCEDURE bench_load(total bigint, per bigint) LANGUAGE plpgsql AS $$
  DECLARE base bigint := 0;
  BEGIN
    WHILE base < total LOOP
      INSERT INTO bench_rows ${ROWS}(base + 1, least(base + per, total)) i;
      base := base + per;
      COMMIT;
    END LOOP;
  END $$`;

/** Transactions of 450 inserts, 350 updates and 200 deletes, on a table that holds rows 1..changes * 0.55. */
const MIX = `
  CREATE PROCEDURE bench_mix(changes bigint) LANGUAGE plpgsql AS $$
  DECLARE steps bigint := changes / 1000; prefilled bigint := steps * 550;
  BEGIN
    FOR step IN 0..steps - 1 LOOP
      INSERT INTO bench_rows ${ROWS}(prefilled + step * 450 + 1, prefilled + (step + 1) * 450) i;
      UPDATE bench_rows SET qty = qty + 1, price = price + 0.01, note = 'updated ' || note
        WHERE id BETWEEN step * 350 + 1 AND (step + 1) * 350;
      DELETE FROM bench_rows WHERE id BETWEEN steps * 350 + step * 200 + 1 AND steps * 350 + (step + 1) * 200;
      COMMIT;
    END LOOP;
  END $$`;

/** An empty table in a new database, with its publication where it is going to be streamed. */
export async function createTable(server, database, { publication = true } = {}) {
  await server.createDatabase(database);
  await server.query(database, CREATE);
  for (const procedure of [LOAD, MIX]) await server.query(database, procedure);
  if (publication) await server.query(database, `CREATE PUBLICATION ${PUBLICATION} FOR TABLE bench_rows`);
}

export async function loadRows(server, database, { rows, perTransaction = 1000 }) {
  await server.query(database, `CALL bench_load(${rows}, ${perTransaction})`);
}

export async function prefillForMix(server, database, { changes }) {
  await loadRows(server, database, { rows: (changes / 1000) * 550 });
}

export async function loadMix(server, database, { changes }) {
  await server.query(database, `CALL bench_mix(${changes})`);
}

/** Number of rows, and a hash over all columns of all rows that does not depend on their order. */
export async function contentOf(server, database, { schema = 'public' } = {}) {
  const [content] = await server.query(database, contentSql(COLUMNS.join(', '), `${schema}.bench_rows`));
  return content;
}

/** The same of lines of JSON that the stdout sink has printed: the server reads their values. */
export async function contentOfLines(server, database, file) {
  const client = await server.connect(database);
  try {
    await client.query('CREATE TEMPORARY TABLE lines (line jsonb NOT NULL)');
    // A line of JSON has none of these characters as themselves.
    const copy = copyFrom("COPY lines FROM STDIN (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')");
    await pipeline(createReadStream(file), client.query(copy));
    const row = "(jsonb_populate_record(NULL::bench_rows, line->'after'))";
    const { rows } = await client.query(contentSql(COLUMNS.map((column) => `${row}.${column}`).join(', '), 'lines'));
    return rows[0];
  } finally {
    await client.end();
  }
}

function contentSql(columns, table) {
  return `
    SELECT count(*)::int AS rows, coalesce(sum(hashtextextended(ROW(${columns})::text, 0)::numeric), 0)::text AS hash
    FROM ${table}`;
}

export function expectSame(what, expected, came) {
  if (expected.rows === came.rows && expected.hash === came.hash) return;
  throw new Error(
    `${what}: expected ${expected.rows} rows with hash ${expected.hash}; came ${came.rows} rows with hash ${came.hash}`,
  );
}

export function expectCount(what, expected, came) {
  if (expected !== came) throw new Error(`${what}: expected ${expected}; came ${came}`);
}

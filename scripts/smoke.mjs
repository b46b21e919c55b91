// A short real pipeline under the Node that runs this script: a Postgres, a table, a copy, rows compared. Exits 0 or 1.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { postgresUri, startPostgres } from './embedded-postgres.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const pg = createRequire(join(root, 'drivers/postgres/package.json'))('pg');
const ROWS = 5_000;
const ALL = 'select * from orders order by id';

const PIPELINE = `pipeline: shop
source: { kind: postgres, uri: "\${env:SOURCE_URI}", slotName: shop }
sink: { type: postgres, uri: "\${env:SINK_URI}" }
tables:
  - { source: public.orders, target: orders }
`;

const server = await startPostgres();
const folder = mkdtempSync(join(tmpdir(), 'urutau-smoke-'));
try {
  process.exitCode = await smoke();
} finally {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}

async function smoke() {
  await query('postgres', 'create database shop', 'create database copy');
  await query(
    'shop',
    'create table orders (id bigint primary key, name text, amount numeric(12,2), at timestamptz)',
    `insert into orders select n, 'order ' || n, n * 1.01, timestamptz '2024-01-01' + n * interval '1 s' from generate_series(1, ${ROWS}) n`,
  );
  const copied = await run();
  await query('shop', 'update orders set amount = -amount where id % 2 = 0', 'delete from orders where id % 5 = 0');
  const followed = copied && (await run());
  console.log(followed ? `${ROWS} rows copied and followed on Node ${process.versions.node}` : 'the smoke run failed');
  return followed ? 0 : 1;
}

/** One run until everything is there; true when the copy then equals the source. */
async function run() {
  const file = join(folder, 'shop.yaml');
  writeFileSync(file, PIPELINE);
  const args = [join(root, 'host/dist/main.js'), 'run', '-f', file, '--until-caught-up', '--log-level', 'warn'];
  const env = { ...process.env, SOURCE_URI: postgresUri(server, 'shop'), SINK_URI: postgresUri(server, 'copy') };
  const [code] = await once(spawn(process.execPath, args, { env, stdio: 'inherit' }), 'exit');
  if (code !== 0) {
    console.error(`expected the run to end with 0; it ended with ${code}`);
    return false;
  }
  const [source, copy] = [await query('shop', ALL), await query('copy', ALL)];
  const same = isDeepStrictEqual(source, copy);
  if (!same) console.error(`source and copy differ: ${source.length} and ${copy.length} rows`);
  return same;
}

/** Rows of the last statement. */
async function query(database, ...statements) {
  const client = new pg.Client({ connectionString: postgresUri(server, database) });
  await client.connect();
  try {
    let rows = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}

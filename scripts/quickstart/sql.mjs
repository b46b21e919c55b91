// Runs one statement in a database of a running `npm run quickstart -- --keep`, for want of psql:
//   node scripts/quickstart/sql.mjs source|destination "SELECT …"
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { parse } from 'yaml';

const FILE = join(dirname(fileURLToPath(import.meta.url)), '../../.urutau/quickstart/pipeline.yaml');
const SIDES = { source: 'source', destination: 'sink' };

await main();

async function main() {
  const [side, statement] = process.argv.slice(2);
  if (SIDES[side] === undefined || statement === undefined) {
    console.error('usage: node scripts/quickstart/sql.mjs source|destination "SELECT …"');
    process.exitCode = 2;
    return;
  }
  let client;
  try {
    client = new pg.Client({ connectionString: parse(readFileSync(FILE, 'utf8'))[SIDES[side]].uri });
    await client.connect();
    const { command, rowCount, rows } = await client.query(statement);
    if (rows.length > 0) console.table(rows);
    else console.log(`${command} ${rowCount ?? 0}`);
  } catch (error) {
    const away = error.code === 'ECONNREFUSED' || error.code === 'ENOENT';
    console.error(away ? 'nothing runs here: start it with `npm run quickstart -- --keep`' : error.message);
    process.exitCode = 1;
  } finally {
    await client?.end();
  }
}

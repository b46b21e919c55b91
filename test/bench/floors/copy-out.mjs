// What psql does with COPY … TO STDOUT >/dev/null, where there is no psql: copy-out.mjs URI "COPY …"
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';

const [connectionString, sql] = process.argv.slice(2);
const client = new pg.Client({ connectionString });
await client.connect();
for await (const _ of client.query(copyTo(sql)));
await client.end();

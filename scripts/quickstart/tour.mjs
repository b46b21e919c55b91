// What the quickstart shows, step by step.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { postgresUri, startPostgres } from '../embedded-postgres.mjs';
import { compareTables, printComparison } from './compare.mjs';
import { startHost } from './host.mjs';
import { pipelineFile } from './pipeline-file.mjs';
import { fillShop, TABLES } from './shop.mjs';
import { changeSomething } from './traffic.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const FOLDER = join(root, '.urutau/quickstart');
const PIPELINE_FILE = join(FOLDER, 'pipeline.yaml');
const PID_FILE = join(FOLDER, 'quickstart.pid');
const LIVE_MS = 4_000;
const PAUSE_MS = 15;
const EQUAL_WITHIN_MS = 60_000;

/** Ends all that it started before it returns or throws. `signal` ends it early. */
export async function tour({ keep, startMs, signal }) {
  const closers = [];
  let step = 'before anything was started';
  const say = (text) => {
    step = text;
    console.log(`\n${text}`);
  };
  try {
    say('1  Starting a PostgreSQL of its own, with a database shop and an empty one beside it');
    const server = await startPostgres();
    closers.push(() => server.close());
    signal.throwIfAborted();
    const [source, destination] = await makeDatabases(server, closers);
    const filled = await fillShop(source);
    console.log(`   port ${server.port}; ${filled.map(({ table, rows }) => `${rows} ${table}`).join(', ')}`);
    signal.throwIfAborted();

    say('2  Writing a pipeline file');
    makeFolder();
    closers.push(() => rmSync(PID_FILE, { force: true }));
    writeFileSync(
      PIPELINE_FILE,
      pipelineFile({ source: postgresUri(server, 'shop'), sink: postgresUri(server, 'copy') }),
    );
    console.log(`   ${shown(PIPELINE_FILE)}`);

    say('3  Starting the host, which copies the tables while they may change');
    const metricsPort = keep ? await freePort() : undefined;
    const host = startHost({ root, pipelineFile: PIPELINE_FILE, folder: FOLDER, metricsPort });
    closers.push(() => host.stop());
    console.log(`   npx urutau-host run -f ${shown(PIPELINE_FILE)}`);
    await equality({ source, destination, host, signal });
    console.log('   the destination holds every row');

    say('4  Changing rows at the source while it streams');
    const live = await changeFor(LIVE_MS, { source, host, signal });
    console.log(`   ${live.total} changes in ${LIVE_MS / 1000} s: ${inWords(live)}`);

    say('5  Comparing source and destination: number of rows, and a hash over all of their content');
    const { tables, waitedMs } = await equality({ source, destination, host, signal });
    printComparison(tables);
    console.log(
      `   equal ${(waitedMs / 1000).toFixed(1)} s after the last change, ${seconds(startMs)} s after the start`,
    );

    if (keep) await keepRunning({ source, destination, host, metricsPort, signal, say });
    else {
      say('6  Ending host and server');
      await closeAll(closers);
      console.log(`   done in ${seconds(startMs)} s`);
      printNext();
    }
  } catch (error) {
    if (!signal.aborted) error.message = `${error.message}\n(in step "${step.trim()}")`;
    if (!signal.aborted || !keep || step[0] !== '6') throw error;
  } finally {
    await closeAll(closers);
  }
}

/** Empties what an earlier run left, unless it still runs. */
function makeFolder() {
  const pid = existsSync(PID_FILE) ? Number(readFileSync(PID_FILE, 'utf8')) : undefined;
  if (pid !== undefined && isAlive(pid)) {
    throw new Error(`another quickstart runs in this folder (process ${pid}): end it with Ctrl-C first`);
  }
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
  writeFileSync(PID_FILE, String(process.pid));
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

async function makeDatabases(server, closers) {
  const connect = async (database) => {
    const client = new pg.Client({ connectionString: postgresUri(server, database) });
    // The server may end before its connections do.
    client.on('error', () => {});
    await client.connect();
    closers.push(() => client.end().catch(() => {}));
    return client;
  };
  const admin = await connect('postgres');
  for (const database of ['shop', 'copy']) await admin.query(`CREATE DATABASE ${database}`);
  return [await connect('shop'), await connect('copy')];
}

/** Waits until all tables are equal. Throws with what differs when that takes too long, or when the host ends. */
async function equality({ source, destination, host, signal }) {
  const beganMs = performance.now();
  for (;;) {
    const tables = await compareTables(source, destination, TABLES);
    const waitedMs = performance.now() - beganMs;
    if (tables.every(({ equal }) => equal)) return { tables, waitedMs };
    host.throwIfEnded();
    if (waitedMs > EQUAL_WITHIN_MS) {
      printComparison(tables);
      const names = tables.filter(({ equal }) => !equal).map(({ table }) => table);
      throw new Error(`${names.join(', ')} still differ after ${EQUAL_WITHIN_MS / 1000} s; ${host.lastWords()}`);
    }
    await delay(50, undefined, { signal });
  }
}

async function changeFor(ms, { source, host, signal }) {
  const counts = { total: 0 };
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; ) {
    host.throwIfEnded();
    const kind = await changeSomething(source, counts.total);
    counts.total++;
    counts[kind] = (counts[kind] ?? 0) + 1;
    await delay(PAUSE_MS, undefined, { signal });
  }
  return counts;
}

function inWords({ total: _total, ...kinds }) {
  return Object.entries(kinds)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ');
}

async function keepRunning({ source, destination, host, metricsPort, signal, say }) {
  say('6  Everything goes on running, with live changes, until Ctrl-C. In another terminal, try:');
  printCommands(metricsPort);
  for (let made = 0; ; made++) {
    host.throwIfEnded();
    await changeSomething(source, made);
    if (made % 100 === 99) {
      const [{ rows: at }, { rows: to }] = await Promise.all(
        [source, destination].map((client) => client.query('SELECT count(*)::int AS orders FROM orders')),
      );
      console.log(
        `   ${made + 1} more changes; orders: ${at[0].orders} at the source, ${to[0].orders} at the destination`,
      );
    }
    await delay(100, undefined, { signal });
  }
}

function printCommands(metricsPort) {
  const file = shown(PIPELINE_FILE);
  console.log(`
   npx urutau-host table status -f ${file}
   npx urutau-host table pause  -f ${file} public.orders
   npx urutau-host table resume -f ${file} public.orders
   npx urutau-host verify       -f ${file}
   npx urutau-host validate -f ${file}

   node scripts/quickstart/sql.mjs source "UPDATE customers SET name = 'Ada' WHERE id = 1"
   node scripts/quickstart/sql.mjs destination "SELECT id, name FROM customers WHERE id = 1"

   curl -s http://127.0.0.1:${metricsPort}/metrics | grep urutau_
`);
}

function printNext() {
  console.log(`
What next:
   ${shown(PIPELINE_FILE)}   the pipeline file, with a comment on each field
   npm run quickstart -- --keep          leaves it running with live changes, and names commands to try
   docs/pipeline-file.md, docs/postgres-source.md   for your own database`);
}

/** In the opposite order of opening, and all of them, whatever fails. Empties the list, so that a second call does nothing. */
async function closeAll(closers) {
  const failures = [];
  while (closers.length > 0) {
    try {
      await closers.pop()();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function freePort() {
  const probe = createServer();
  await new Promise((done, fail) => probe.once('error', fail).listen(0, '127.0.0.1', done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

function shown(path) {
  return relative(process.cwd(), path);
}

function seconds(startMs) {
  return ((performance.now() - startMs) / 1000).toFixed(1);
}

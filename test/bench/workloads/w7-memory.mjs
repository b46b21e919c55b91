import { setTimeout as delay } from 'node:timers/promises';
import { driverFolder } from '../drivers.mjs';
import { cpuOfTree } from '../measure.mjs';
import { product } from '../product.mjs';
import { contentOf, createTable, expectCount, expectSame, loadRows, TABLE } from '../table.mjs';
import { dropSlot, waitingRows } from '../waiting-rows.mjs';

const DATABASE = 'bench_w7';
const SLOT = 'bench_w7';
const IDLE_TABLES = 1000;
const IDLE_SECONDS = 60;
const SLOW_BYTES_PER_SECOND = 1_000_000;
const SLOW_ROWS = 100_000;

/** Peak memory of each process: one large transaction into Postgres; and what takes long, when it is asked for. */
export async function run(context) {
  await oneTransaction(context);
  if (!context.options.long) return;
  await largeTable(context);
  await slowSink(context);
  await idleTables(context);
}

async function oneTransaction({ options: { rows }, folder, servers: { source, destination }, contest }) {
  const [empty, target] = ['bench_w7_empty', 'bench_w7_target'];
  await createTable(source, DATABASE);
  await destination.createDatabase(empty);
  const sinkTo = (database) => ({ type: 'postgres', uri: destination.uri(database), namespace: 'public' });
  const load = () => loadRows(source, DATABASE, { rows, perTransaction: rows });
  const waiting = await waitingRows({ server: source, database: DATABASE, folder, sink: sinkTo(empty), load });
  try {
    await waiting.copySlot();
    await destination.createDatabase(target, { template: empty });
    const measured = await waiting.runner('w7', { sink: sinkTo(target) }).untilCaughtUp();
    expectSame('content of the destination', await contentOf(source, DATABASE), await contentOf(destination, target));
    record(contest, measured, 'sink', 'w7 Postgres sink', `one transaction of ${rows} rows into Postgres`);
  } finally {
    await waiting.drop();
  }
}

async function largeTable({ options, folder, servers: { source: server }, contest }) {
  const rows = 10 * options.rows;
  await createTable(server, DATABASE, { publication: false });
  await loadRows(server, DATABASE, { rows, perTransaction: 100_000 });
  await server.query(DATABASE, 'ANALYZE bench_rows');
  const pipeline = {
    source: { kind: 'postgres', uri: server.uri(DATABASE), slotName: SLOT },
    sink: { type: 'stdout', discard: true },
    tables: [{ source: TABLE, target: 'bench_rows' }],
  };
  const measured = await product({ folder, name: 'w7-large', pipeline }).untilCaughtUp();
  const [{ snapshotRows }] = Object.values(measured.summary.tables);
  expectCount('rows of the snapshot', rows, snapshotRows);
  record(contest, measured, 'sink', 'w7 discard sink', `a table of ${rows} rows`);
  await dropSlot(server, DATABASE, SLOT);
}

async function slowSink({ folder, servers: { source: server }, contest }) {
  const sink = await driverFolder('slow-sink');
  await createTable(server, DATABASE, { publication: false });
  await loadRows(server, DATABASE, { rows: SLOW_ROWS });
  const pipeline = {
    source: { kind: 'postgres', uri: server.uri(DATABASE), slotName: SLOT },
    sink: { driver: sink, config: { bytesPerSecond: SLOW_BYTES_PER_SECOND } },
    tables: [{ source: TABLE, target: 'bench_rows' }],
  };
  const measured = await product({ folder, name: 'w7-slow', pipeline, plugins: { sink } }).untilCaughtUp();
  record(contest, measured, 'sink', 'w7 discard sink', 'a sink that takes 1 MB/s');
  await dropSlot(server, DATABASE, SLOT);
}

function record(contest, { processes }, role, key, note) {
  const peakOf = (name) => (processes.find((process) => process.role === name)?.peakMemoryBytes ?? Number.NaN) / 1e6;
  contest.figure('w7 host', peakOf('host'), { note });
  contest.figure('w7 source', peakOf('source'), { note });
  contest.figure(key, peakOf(role), { note });
}

/** All tables are streamed, and one of them gets ten rows a second. */
async function idleTables({ folder, servers: { source: server }, contest }) {
  await server.createDatabase(DATABASE);
  const names = Array.from({ length: IDLE_TABLES }, (_, index) => `idle_${index}`);
  const creates = names.map((name) => `CREATE TABLE ${name} (id bigint PRIMARY KEY, note text)`);
  await server.query(DATABASE, creates.join(';'));
  const host = product({
    folder,
    name: 'w7-idle',
    pipeline: {
      source: { kind: 'postgres', uri: server.uri(DATABASE), slotName: SLOT, snapshotMode: 'none' },
      sink: { type: 'stdout', discard: true },
      tables: names.map((name) => ({ source: `public.${name}`, target: name })),
    },
  }).start();
  const writer = await server.connect(DATABASE);
  try {
    await settled(host);
    const before = cpuOfTree(host.pid);
    for (let made = 0; made < 10 * IDLE_SECONDS; made++) {
      host.throwIfEnded();
      await writer.query('INSERT INTO idle_0 VALUES ($1, $2)', [made, `row ${made}`]);
      await delay(100);
    }
    contest.figure('w7 idle tables', (60 * (cpuOfTree(host.pid) - before)) / IDLE_SECONDS);
  } finally {
    await writer.end();
    await host.stop();
    await dropSlot(server, DATABASE, SLOT);
  }
}

/** Started: its CPU has stood nearly still for two seconds. */
async function settled(host) {
  for (let calm = 0, last = 0; calm < 2; ) {
    await delay(1000);
    host.throwIfEnded();
    const now = cpuOfTree(host.pid);
    calm = now > 1 && now - last < 0.1 ? calm + 1 : 0;
    last = now;
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../contest.mjs';
import { product } from '../product.mjs';
import { createTable, loadRows, TABLE } from '../table.mjs';
import { dropSlot } from '../waiting-rows.mjs';

const DATABASE = 'bench_start';
const SLOT = 'bench_start';
const RUNS = 5;
const ROW_MS_MAX = 30_000;

/** From the start of `run` until the first row of a small table is durable in Postgres. */
export async function run({ folder, servers: { source, destination }, contest }) {
  await createTable(source, DATABASE, { publication: false });
  await loadRows(source, DATABASE, { rows: 10, perTransaction: 10 });
  const seconds = [];
  // The first one warms the machine up.
  for (let number = 0; number <= RUNS; number++) {
    const took = await once({ folder, source, destination });
    console.log(`   ${took.toFixed(2)} s`);
    if (number > 0) seconds.push(took);
  }
  contest.figure('start', median(seconds));
}

async function once({ folder, source, destination }) {
  await dropSlot(source, DATABASE, SLOT);
  await destination.createDatabase(DATABASE);
  const reader = await destination.connect(DATABASE);
  const made = product({
    folder,
    name: 'start',
    pipeline: {
      source: { kind: 'postgres', uri: source.uri(DATABASE), slotName: SLOT },
      sink: { type: 'postgres', uri: destination.uri(DATABASE), namespace: 'public' },
      tables: [{ source: TABLE, target: 'bench_rows' }],
    },
  });
  const startMs = performance.now();
  const host = made.start();
  try {
    while (!(await hasRow(reader))) {
      host.throwIfEnded();
      if (performance.now() - startMs > ROW_MS_MAX) throw new Error(`no row within ${ROW_MS_MAX / 1000} s`);
      await delay(5);
    }
    return (performance.now() - startMs) / 1000;
  } finally {
    await reader.end();
    await host.stop();
  }
}

async function hasRow(reader) {
  const { rows: tables } = await reader.query("SELECT to_regclass('public.bench_rows') IS NOT NULL AS there");
  if (!tables[0].there) return false;
  return (await reader.query('SELECT FROM bench_rows LIMIT 1')).rowCount > 0;
}

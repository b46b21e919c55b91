import { setTimeout as delay } from 'node:timers/promises';
import { product } from '../product.mjs';
import { contentOf, createTable, expectSame, loadRows, TABLE } from '../table.mjs';
import { dropSlot } from '../waiting-rows.mjs';

const DATABASE = 'bench_w6';
const SLOT = 'bench_w6';
const COMMITS_PER_SECOND = 100;
const SECONDS = 20;
const WARM_UP_COMMITS = 100;
const READY_MS_MAX = 60_000;
/** The first key of the commits that are measured. */
const BASE = 1_000_000_000;

/** From the commit's answer at the source until a reader of the destination sees the row. */
export async function run({ folder, servers: { source, destination }, contest }) {
  await createTable(source, DATABASE, { publication: false });
  await loadRows(source, DATABASE, { rows: 1000 });
  await destination.createDatabase(DATABASE);
  const host = product({
    folder,
    name: 'w6',
    pipeline: {
      source: { kind: 'postgres', uri: source.uri(DATABASE), slotName: SLOT },
      sink: { type: 'postgres', uri: destination.uri(DATABASE), namespace: 'public', flush: { interval: '20ms' } },
      tables: [{ source: TABLE, target: 'bench_rows' }],
    },
  }).start();
  const [writer, reader] = [await source.connect(DATABASE), await destination.connect(DATABASE)];
  try {
    await snapshotDone(reader, host);
    const latencies = await commitsToVisible({
      writer,
      reader,
      host,
      commits: WARM_UP_COMMITS + COMMITS_PER_SECOND * SECONDS,
    });
    const sorted = latencies.slice(WARM_UP_COMMITS).sort((a, b) => a - b);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    console.log(
      `   median ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, worst ${sorted.at(-1).toFixed(1)} ms`,
    );
    contest.figure('w6 median', at(0.5));
    contest.figure('w6 p99', at(0.99));
    expectSame('content of the destination', await contentOf(source, DATABASE), await contentOf(destination, DATABASE));
  } finally {
    await Promise.all([writer.end(), reader.end()]);
    await host.stop();
    await dropSlot(source, DATABASE, SLOT);
  }
}

async function snapshotDone(reader, host) {
  for (const untilMs = performance.now() + READY_MS_MAX; performance.now() < untilMs; ) {
    host.throwIfEnded();
    const { rows } = await reader.query("SELECT to_regclass('public.bench_rows') IS NOT NULL AS there");
    if (rows[0].there && (await reader.query('SELECT count(*)::int AS n FROM bench_rows')).rows[0].n === 1000) return;
    await delay(20);
  }
  throw new Error('the snapshot was not there in time');
}

async function commitsToVisible({ writer, reader, host, commits }) {
  const committedMs = [];
  const latencies = [];
  const watching = watch();
  const startMs = performance.now();
  for (let made = 0; made < commits; made++) {
    await delay(Math.max(0, startMs + (1000 * made) / COMMITS_PER_SECOND - performance.now()));
    await writer.query(
      'INSERT INTO bench_rows SELECT $1::bigint, qty, note, price, at, ok, uid, doc, day, score FROM bench_rows WHERE id = 1',
      [BASE + made],
    );
    committedMs[made] = performance.now();
  }
  await watching;
  return latencies;

  /** Looks again as soon as it has an answer and a millisecond has passed. */
  async function watch() {
    for (let seen = 0; seen < commits; ) {
      host.throwIfEnded();
      const { rows } = await reader.query('SELECT count(*)::int AS n FROM bench_rows WHERE id >= $1', [BASE + seen]);
      const nowMs = performance.now();
      for (let row = 0; row < rows[0].n; row++, seen++) {
        // Visible before the source has answered its own client: no time at all.
        latencies[seen] = Math.max(0, nowMs - (committedMs[seen] ?? nowMs));
      }
      await delay(1);
    }
  }
}

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { measure } from '../measure.mjs';
import { skipAbsentPeers, streamingPeers } from '../peers.mjs';
import { printHotFunctions } from '../profile.mjs';
import {
  contentOf,
  contentOfLines,
  createTable,
  expectCount,
  expectSame,
  loadMix,
  loadRows,
  PUBLICATION,
  prefillForMix,
} from '../table.mjs';
import { waitingRows } from '../waiting-rows.mjs';

const DATABASE = 'bench_w1';
const DISCARD = { type: 'stdout', discard: true };
/** Decoding a million transactions of one row takes a while, and a part of them tells as much. */
const SMALL_TRANSACTIONS_SHARE = 5;

/** Changes wait in the slot; from the start of the program until it has read them all. */
export async function run({ options, folder, tools, servers: { source: server }, contest }) {
  skipAbsentPeers('w1', { tools, contest });
  for (const size of options.sizes) {
    const variant = variantOf(size, options.rows);
    console.log(`   ${variant.title}: ${variant.rows} changes`);
    const waiting = await load(server, variant, folder);
    try {
      const peers = streamingPeers({ server, database: DATABASE, folder, tools, waiting, rows: variant.rows });
      const contenders = [
        ...(tools.pg_recvlogical ? [floor({ server, tools, waiting, variant })] : []),
        ...(size === '1000' ? [peek({ server, waiting, variant })] : []),
        ...peers,
        { name: 'urutau', run: () => runProduct({ server, waiting, variant, name: `w1-${size}` }) },
      ];
      const medians = await contest.interleave(`w1 ${variant.title}`, contenders);
      if (medians.pg_recvlogical) {
        contest.figure(`${variant.key} rate`, medians.urutau.rowsPerSecond / medians.pg_recvlogical.rowsPerSecond);
      } else contest.skip(`${variant.key} rate`, 'there is no pg_recvlogical');
      contest.figure(`${variant.key} cpu`, medians.urutau.cpuMicrosPerRow);
      contest.ratios(`w1 ${variant.title}`, medians, peers);
      if (size === 'all') recordMemory(contest, medians.urutau);
      if (size === '1000' && options.check) await checkContent({ server, folder, waiting });
      if (size === '1000' && options.profile) {
        await runProduct({ server, waiting, variant, name: 'w1-profile', profile: join(options.profile, 'w1') });
        printHotFunctions(join(options.profile, 'w1'));
      }
    } finally {
      await waiting.drop();
    }
  }
}

function variantOf(size, rows) {
  switch (size) {
    case 'mix':
      return { key: 'w1 mix', title: 'mix', rows, mix: true };
    case 'all':
      return { key: 'w1 one tx', title: 'one transaction', rows, perTransaction: rows };
    case '1000':
      return { key: 'w1', title: 'transactions of 1000', rows, perTransaction: 1000 };
    default: {
      const perTransaction = Number(size);
      const share = perTransaction < 100 ? SMALL_TRANSACTIONS_SHARE : 1;
      return { key: `w1 tx of ${size}`, title: `transactions of ${size}`, rows: rows / share, perTransaction };
    }
  }
}

async function load(server, { rows, perTransaction, mix }, folder) {
  await createTable(server, DATABASE);
  if (mix) await prefillForMix(server, DATABASE, { changes: rows });
  return await waitingRows({
    server,
    database: DATABASE,
    folder,
    sink: DISCARD,
    load: () =>
      mix ? loadMix(server, DATABASE, { changes: rows }) : loadRows(server, DATABASE, { rows, perTransaction }),
  });
}

function floor({ server, tools, waiting, variant: { rows } }) {
  const args = [
    ...['-d', server.uri(DATABASE), '-S', waiting.slot, '--start', '--no-loop', '-f', '-'],
    ...['--endpos', waiting.endLsn, '-o', 'proto_version=1', '-o', `publication_names=${PUBLICATION}`],
  ];
  return {
    name: 'pg_recvlogical',
    async run() {
      await waiting.copySlot();
      return { rows, ...(await measure(tools.pg_recvlogical, args, { server })) };
    },
  };
}

/** What the server's decoding alone takes: nothing leaves it. */
function peek({ server, waiting, variant: { rows } }) {
  const sql = `SELECT count(*)::int AS messages FROM pg_logical_slot_peek_binary_changes('${waiting.slot}', NULL, NULL,
    'proto_version', '1', 'publication_names', '${PUBLICATION}')`;
  return {
    name: 'decoding inside the server',
    async run() {
      await waiting.copySlot();
      const startMs = performance.now();
      const [{ messages }] = await server.query(DATABASE, sql);
      if (messages < rows) throw new Error(`the server decoded ${messages} messages of ${rows} rows`);
      return { rows, seconds: (performance.now() - startMs) / 1000, processes: [] };
    },
  };
}

async function runProduct({ server, waiting, variant: { rows, mix }, name, profile }) {
  await waiting.copySlot();
  const run = await waiting.runner(name, { profile }).untilCaughtUp({ server });
  const [{ inserts, updates, deletes }] = Object.values(run.summary.tables);
  const shares = mix ? [0.45, 0.35, 0.2] : [1, 0, 0];
  expectCount('inserts', Math.round(rows * shares[0]), inserts);
  expectCount('updates', Math.round(rows * shares[1]), updates);
  expectCount('deletes', Math.round(rows * shares[2]), deletes);
  return { rows, ...run };
}

function recordMemory(contest, { processes }) {
  const peakOf = (role) => (processes.find((process) => process.role === role)?.peakMemoryBytes ?? Number.NaN) / 1e6;
  const note = { note: 'one transaction of all rows' };
  contest.figure('w7 host', peakOf('host'), note);
  contest.figure('w7 source', peakOf('source'), note);
  contest.figure('w7 discard sink', peakOf('sink'), note);
}

/** Untimed: the same changes as lines, whose values the server compares with its own. */
async function checkContent({ server, folder, waiting }) {
  await waiting.copySlot();
  const stdoutFile = join(folder, 'w1-lines.json');
  await waiting.runner('w1-lines', { sink: { type: 'stdout' } }).untilCaughtUp({ stdoutFile });
  expectSame(
    'content of the lines',
    await contentOf(server, DATABASE),
    await contentOfLines(server, DATABASE, stdoutFile),
  );
  rmSync(stdoutFile);
  console.log('   the content of all rows is right, printed as lines');
}

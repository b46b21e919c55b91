import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { measure } from '../measure.mjs';
import { skipAbsentPeers, snapshotPeers } from '../peers.mjs';
import { product } from '../product.mjs';
import { printHotFunctions } from '../profile.mjs';
import { contentOf, contentOfLines, createTable, expectCount, expectSame, loadRows, TABLE } from '../table.mjs';
import { dropSlot } from '../waiting-rows.mjs';

const DATABASE = 'bench_w2';
const SLOT = 'bench_w2';
const COPY = 'COPY public.bench_rows TO STDOUT (FORMAT binary)';
const OWN_FLOOR = fileURLToPath(new URL('../floors/copy-out.mjs', import.meta.url));

/** The initial copy of a table that nobody changes. */
export async function run({ options, folder, tools, servers: { source: server }, contest }) {
  const { rows, profile } = options;
  await createTable(server, DATABASE);
  await loadRows(server, DATABASE, { rows });
  await server.query(DATABASE, 'VACUUM (FREEZE, ANALYZE) bench_rows');
  await server.checkpoint();

  const uri = server.uri(DATABASE);
  const [command, args] = tools.psql ? [tools.psql, [uri, '-Xqc', COPY]] : [process.execPath, [OWN_FLOOR, uri, COPY]];
  if (!tools.psql) contest.skip('psql COPY binary', 'there is no psql; a small program of Node copies instead');
  skipAbsentPeers('w2', { tools, contest });
  const peers = snapshotPeers({ server, database: DATABASE, folder, tools, rows });
  const medians = await contest.interleave('w2', [
    { name: 'COPY binary', run: async () => ({ rows, ...(await measure(command, args, { server })) }) },
    ...peers,
    { name: 'urutau', run: () => snapshot({ name: 'w2', sink: { type: 'stdout', discard: true } }) },
  ]);
  contest.figure('w2 rate', medians.urutau.rowsPerSecond / medians['COPY binary'].rowsPerSecond);
  contest.figure('w2 cpu', medians.urutau.cpuMicrosPerRow);
  contest.ratios('w2', medians, peers);

  if (options.check) {
    const stdoutFile = join(folder, 'w2-lines.json');
    await snapshot({ name: 'w2-lines', sink: { type: 'stdout' }, stdoutFile });
    expectSame(
      'content of the lines',
      await contentOf(server, DATABASE),
      await contentOfLines(server, DATABASE, stdoutFile),
    );
    rmSync(stdoutFile);
    console.log('   the content of all rows is right, printed as lines');
  }
  if (profile) {
    await snapshot({ name: 'w2-profile', sink: { type: 'stdout', discard: true }, profile: join(profile, 'w2') });
    printHotFunctions(join(profile, 'w2'));
  }

  async function snapshot({ name, sink, stdoutFile, profile: profileFolder }) {
    await dropSlot(server, DATABASE, SLOT);
    const source = { kind: 'postgres', uri, slotName: SLOT };
    const pipeline = { source, sink, tables: [{ source: TABLE, target: 'bench_rows' }] };
    const host = product({ folder, name, pipeline, profile: profileFolder });
    const measured = await host.untilCaughtUp({ server, stdoutFile });
    await dropSlot(server, DATABASE, SLOT);
    const [{ snapshotRows }] = Object.values(measured.summary.tables);
    expectCount('rows of the snapshot', rows, snapshotRows);
    return { rows, ...measured };
  }
}

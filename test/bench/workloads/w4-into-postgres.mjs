import { join } from 'node:path';
import { measure } from '../measure.mjs';
import { printHotFunctions } from '../profile.mjs';
import { contentOf, createTable, expectCount, expectSame, loadRows } from '../table.mjs';
import { waitingRows } from '../waiting-rows.mjs';

const DATABASE = 'bench_w4';
/** Holds the empty target and the checkpoint of the first run; each run gets a copy of it. */
const EMPTY = 'bench_w4_empty';
const TARGET = 'bench_w4_target';
const FLOOR = 'bench_w4_floor';
const UPDATES = ['qty', 'note', 'price', 'at', 'ok', 'uid', 'doc', 'day', 'score'];

/** The waiting inserts of w1, durable in another server. */
export async function run({ options, folder, tools, servers: { source, destination }, contest }) {
  const { rows, profile } = options;
  await createTable(source, DATABASE);
  await destination.createDatabase(EMPTY);
  const sinkTo = (database) => ({ type: 'postgres', uri: destination.uri(database), namespace: 'public' });
  const waiting = await waitingRows({
    server: source,
    database: DATABASE,
    folder,
    sink: sinkTo(EMPTY),
    load: () => loadRows(source, DATABASE, { rows }),
  });
  const expected = await contentOf(source, DATABASE);
  try {
    const contenders = [{ name: 'urutau', run: () => runProduct('w4') }];
    if (tools.psql) contenders.unshift(await floor());
    else contest.skip('w4 rate', 'there is no psql');
    const medians = await contest.interleave('w4', contenders);
    if (tools.psql) contest.figure('w4 rate', medians.urutau.rowsPerSecond / medians['COPY and INSERT'].rowsPerSecond);
    contest.figure('w4 cpu', medians.urutau.cpuMicrosPerRow);
    if (profile) {
      await runProduct('w4-profile', join(profile, 'w4'));
      printHotFunctions(join(profile, 'w4'));
    }
  } finally {
    await waiting.drop();
  }

  async function runProduct(name, profileFolder) {
    await waiting.copySlot();
    await destination.createDatabase(TARGET, { template: EMPTY });
    await destination.checkpoint();
    const host = waiting.runner(name, { sink: sinkTo(TARGET), profile: profileFolder });
    const measured = await host.untilCaughtUp({ server: destination });
    const [{ inserts }] = Object.values(measured.summary.tables);
    expectCount('inserts', rows, inserts);
    expectSame('content of the destination', expected, await contentOf(destination, TARGET));
    return { rows, ...measured };
  }

  /** The same rows from a file, by one COPY and one INSERT. */
  async function floor() {
    const file = join(folder, 'rows.copy');
    await measure(tools.psql, [source.uri(DATABASE), '-Xqc', `\\copy bench_rows to '${file}' (format binary)`]);
    const merge = `INSERT INTO bench_rows SELECT * FROM stage ON CONFLICT (id) DO UPDATE SET ${UPDATES.map((name) => `${name} = excluded.${name}`).join(', ')}`;
    const args = [
      ...[destination.uri(FLOOR), '-Xq', '-v', 'ON_ERROR_STOP=1'],
      ...['-c', 'CREATE TEMPORARY TABLE stage (LIKE bench_rows)'],
      ...['-c', `\\copy stage from '${file}' (format binary)`],
      ...['-c', merge],
    ];
    return {
      name: 'COPY and INSERT',
      async run() {
        await createTable(destination, FLOOR, { publication: false });
        await destination.checkpoint();
        const measured = await measure(tools.psql, args, { server: destination });
        expectSame('content of the floor', expected, await contentOf(destination, FLOOR));
        return { rows, ...measured };
      },
    };
  }
}

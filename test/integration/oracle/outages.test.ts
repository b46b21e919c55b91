import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { PostgresDestination } from '../../oracle/postgres/destination.ts';
import { PostgresSource } from '../../oracle/postgres/source.ts';
import { Random, seeded } from '../../oracle/random.ts';
import { OracleRun } from '../../oracle/run.ts';
import { freshDatabase } from '../../services/databases.ts';
import { ownPostgres, postgresUri } from '../../services/postgres.ts';
import { waitFor } from '../../services/wait-for.ts';
import { lossyProxy } from './lossy-proxy.ts';
import { SEED, SHORT } from './replicated.ts';

/** The source is its own destination: what is judged is what the oracle believes of it. */
function runOn(sourceUri: string, readUri: string): OracleRun {
  const run = new OracleRun({
    ...SHORT,
    rate: 400,
    source: new PostgresSource(sourceUri),
    destination: new PostgresDestination(readUri),
    seed: SEED,
    demand: [],
    repro: `URUTAU_TEST_SEED=${SEED} npx vitest run test/integration/oracle/outages.test.ts`,
  });
  onTestFinished(() => run.abandon());
  return run;
}

test(`a COMMIT whose question or answer is lost is read back, and the oracle stays right (seed ${SEED})`, async () => {
  const server = inject('postgres18');
  const { name, uri } = await freshDatabase(server, 'oracle_lossy');
  const random = new Random(seeded(SEED));
  let isLossy = false;
  const proxy = await lossyProxy(server, () => isLossy && random.chance(0.1));
  const run = runOn(postgresUri({ ...server, port: proxy.port }, name), uri);

  await run.start();
  isLossy = true;
  await waitFor('five of each cut', 60_000, async () =>
    proxy.cuts.before >= 5 && proxy.cuts.after >= 5 ? true : null,
  );
  isLossy = false;
  await run.stop();
  const { report, counts } = await run.verdict();

  expect(report).toBe('');
  expect(counts.readBack).toEqual({ committed: proxy.cuts.after, undone: proxy.cuts.before });
});

test(`crashes and restarts of the source, and sessions that are ended, leave the oracle right (seed ${SEED})`, async () => {
  const server = await ownPostgres();
  const uri = postgresUri(server);
  const run = runOn(uri, uri);

  await run.start();
  for (let round = 0; round < 3; round++) {
    await committedMore(run, 20);
    await server.kill();
    await pause(200);
    await server.restart();
    await committedMore(run, 20);
    const admin = new pg.Client({ connectionString: uri });
    await admin.connect();
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null`,
    );
    await admin.end();
  }
  await committedMore(run, 20);
  await run.stop();
  const { report, counts } = await run.verdict();

  expect(report).toBe('');
  // A session that is idle at that moment has nothing to read back.
  expect(counts.readBack.committed + counts.readBack.undone).toBeGreaterThanOrEqual(3);
});

async function committedMore(run: OracleRun, transactions: number): Promise<void> {
  const from = run.counts.committed;
  await waitFor(`${transactions} more transactions`, 60_000, async () =>
    run.counts.committed >= from + transactions ? true : null,
  );
}

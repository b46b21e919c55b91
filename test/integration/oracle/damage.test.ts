import type pg from 'pg';
import { expect, test } from 'vitest';
import { CLASSES } from '../../oracle/compare.ts';
import { OPERATION_CASES } from '../../oracle/coverage.ts';
import { waitFor } from '../../services/wait-for.ts';
import { replicated, SEED, SHORT } from './replicated.ts';

const FILE = 'test/integration/oracle/damage.test.ts';

/** One row each, and no row twice. */
const DAMAGE = `
  -- missing
  delete from accounts where id = (select min(id) from accounts);
  -- incorrect, by the last digit of a number
  update accounts set balance = balance + 0.0001 where id = (select max(id) from accounts);
  -- extra
  insert into items (sku, rev) values ('never sold', 1);
  -- stale
  update items set rev = rev - 1 where sku = (select min(sku) from items);
  -- incorrect, by one character of the largest payload
  update events set payload = overlay(payload placing '.' from length(payload)) where (shard, seq) =
    (select shard, seq from events where payload is not null order by length(payload) desc limit 1);
  -- incorrect, by a payload that became NULL
  update events set payload = null where (shard, seq) =
    (select shard, seq from events where payload is not null order by length(payload) limit 1);
  -- duplicated
  alter table events drop constraint events_pkey;
  insert into events select * from events where (shard, seq) =
    (select shard, seq from events where payload is null order by seq limit 1);`;

test('of each class of damage that is done to the destination the verdict names the row, and nothing beside', async () => {
  const { run, source, sink } = await afterTheHost();
  await sink.client.query(DAMAGE);
  await resurrect(source.client, sink.client);

  const { ok, report, differences } = await run.verdict();

  const counts = Object.entries(differences).map(([table, found]) => [table, found.counts]);
  expect(Object.fromEntries(counts), report).toEqual({
    accounts: { ...NONE, missing: 1, incorrect: 1 },
    items: { ...NONE, extra: 1, stale: 1 },
    events: { ...NONE, incorrect: 2, duplicated: 1, resurrected: 1 },
  });
  expect(ok).toBe(false);
  expect(report).toContain('the destination differs from the source in items: 1 extra, 1 stale (');
  expect(report).toContain('extra "never sold", rev 1');
  expect(report).toContain(`seed ${SEED}; once more: URUTAU_TEST_SEED=${SEED} npx vitest run ${FILE}`);
});

test('a source that does not hold what was committed, and a case that was not hit, fail the run by name', async () => {
  const { run, source } = await afterTheHost();
  await source.client.query('delete from items where sku = (select min(sku) from items)');

  const { report, differences } = await run.verdict();

  expect(report).toMatch(/^the source differs from the oracle in items: 1 missing/);
  expect(report).toContain('\nnever hit: backlog episode\n');
  // The destination is judged by a source that is right, or not at all.
  expect(differences).toEqual({});
});

const NONE = Object.fromEntries(CLASSES.map((kind) => [kind, 0]));

/** A short run with everything in the destination; the host is gone, so that it mends nothing. */
async function afterTheHost() {
  const { run, host, source, sink } = await replicated(FILE, {
    ...SHORT,
    demand: [...OPERATION_CASES, 'backlog episode'],
  });
  await run.start();
  host.start();
  await waitFor(`every case (seed ${SEED})`, 60_000, async () =>
    run.coverage.missing(OPERATION_CASES).length === 0 ? true : null,
  );
  await run.stop();
  await run.settle();
  await host.kill();
  return { run, source, sink };
}

/** A key of the beginning, of which there were so many, that is not there any more. */
async function resurrect(source: pg.Client, sink: pg.Client): Promise<void> {
  const { rows } = await source.query(
    `select n from generate_series(0, ${SHORT.rows - 1}) n
     where not exists (select from events where shard = n % 16 and seq = n) limit 1`,
  );
  await sink.query('insert into events (shard, seq, rev) values ($1::int % 16, $1, 1)', [rows[0].n]);
}

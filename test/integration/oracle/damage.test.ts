import type pg from 'pg';
import { expect, test } from 'vitest';
import { CLASSES, type DifferenceClass } from '../../oracle/compare.ts';
import type { TableName } from '../../oracle/tables.ts';
import { waitFor } from '../../services/wait-for.ts';
import { replicated, SEED, SHORT } from './replicated.ts';

const FILE = 'test/integration/oracle/damage.test.ts';

test('a short run beside a healthy host hits every operation and ends with nothing to complain of', async () => {
  const { run, host } = await replicated(FILE, SHORT);

  await run.start();
  host.start();
  await covered(run);
  await run.stop();
  const verdict = await run.verdict();

  expect(verdict.report).toBe('');
  expect(verdict.ok).toBe(true);
});

interface Damage {
  does: string;
  kind: DifferenceClass;
  table: TableName;
  /** Statements in the destination. */
  statements: string[];
}

const DAMAGES: Damage[] = [
  {
    does: 'a row that is deleted',
    kind: 'missing',
    table: 'accounts',
    statements: ['delete from accounts where ctid = (select min(ctid) from accounts)'],
  },
  {
    does: 'a row that nobody wrote',
    kind: 'extra',
    table: 'items',
    statements: [`insert into items (sku, rev) values ('never-sold', 1)`],
  },
  {
    does: 'an older revision',
    kind: 'stale',
    table: 'items',
    statements: ['update items set rev = rev - 1 where sku = (select min(sku) from items)'],
  },
  {
    does: 'another value under the right revision',
    kind: 'incorrect',
    table: 'accounts',
    statements: ['update accounts set balance = balance + 0.0001 where id = (select max(id) from accounts)'],
  },
  {
    does: 'a payload of which one character differs',
    kind: 'incorrect',
    table: 'events',
    statements: [
      `update events set payload = overlay(payload placing '.' from length(payload)) where (shard, seq) =
         (select shard, seq from events where payload is not null order by length(payload) desc limit 1)`,
    ],
  },
  {
    does: 'a payload that became NULL',
    kind: 'incorrect',
    table: 'events',
    statements: [
      `update events set payload = null where (shard, seq) =
         (select shard, seq from events where payload is not null limit 1)`,
    ],
  },
  {
    does: 'a row that is there twice',
    kind: 'duplicated',
    table: 'events',
    statements: [
      'alter table events drop constraint events_pkey',
      'insert into events select * from events where ctid = (select min(ctid) from events)',
    ],
  },
];

test.each(DAMAGES)('$does is called $kind by the verdict', async ({ kind, table, statements }) => {
  const { verdict } = await afterDamage(async (sink) => {
    for (const statement of statements) await sink.query(statement);
  });

  expect(verdict.differences[table]?.counts, verdict.report).toEqual({ ...NONE, [kind]: 1 });
  expect(verdict.report).toContain(`the destination differs from the source in ${table}: 1 ${kind} (${kind} "`);
  expect(verdict.report).toContain(`seed ${SEED}; once more: URUTAU_TEST_SEED=${SEED} npx vitest run ${FILE}`);
});

test('a row that comes back after its delete is called resurrected by the verdict', async () => {
  const { verdict } = await afterDamage(async (sink, source) => {
    // A key that was there before the first change: those are the lowest. One that is gone was deleted or moved.
    const { rows } = await source.query(
      `select n from generate_series(0, ${SHORT.rows - 1}) n
       where not exists (select from events where shard = n % 16 and seq = n) limit 1`,
    );
    await sink.query('insert into events (shard, seq, rev) values ($1 % 16, $1, 1)', [rows[0].n]);
  });

  expect(verdict.differences.events?.counts, verdict.report).toEqual({ ...NONE, resurrected: 1 });
});

test('a source that does not hold what was committed is found before the destination is judged', async () => {
  const { verdict } = await afterDamage((_, source) =>
    source.query('delete from items where ctid = (select min(ctid) from items)'),
  );

  expect(verdict.report).toMatch(/^the source differs from the oracle in items: 1 missing/);
  expect(verdict.differences).toEqual({});
});

const NONE = Object.fromEntries(CLASSES.map((kind) => [kind, 0]));

/** The host has ended when the damage is done, so that it mends nothing. */
async function afterDamage(damage: (sink: pg.Client, source: pg.Client) => Promise<unknown>) {
  const { run, host, source, sink } = await replicated(FILE, SHORT);
  await run.start();
  host.start();
  await covered(run);
  await run.stop();
  await run.settle();
  await host.kill();
  await damage(sink.client, source.client);
  return { verdict: await run.verdict() };
}

async function covered(run: Awaited<ReturnType<typeof replicated>>['run']): Promise<void> {
  await waitFor(`every case (seed ${SEED})`, 60_000, async () => (run.uncovered().length === 0 ? true : null));
}

import type pg from 'pg';
import { expect, inject, test } from 'vitest';
import { kill } from '../../oracle/chaos.ts';
import { seeded } from '../../oracle/random.ts';
import { freshDatabase } from '../../services/databases.ts';
import { appendMistakes } from './append-mistakes.ts';
import { HostProcess } from './host-process.ts';
import { contentOf, createTables, differences, TABLES, Workload } from './workload.ts';

const ROUNDS = Number(process.env['URUTAU_TEST_KILLS'] ?? 50);
const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const ROWS = 6_000;

test(`after ${ROUNDS} kills of random processes in upsert the destination equals the source row for row`, async () => {
  const { source, sink, host } = await begin('upsert');

  await underKills(host, source.client);

  for (const [table, { key, columns }] of Object.entries(TABLES)) {
    expect(await differences(source.client, sink.client, table, table, [...key], columns), `seed ${SEED}`).toEqual({
      missing: [],
      extra: [],
      different: [],
    });
    const order = key.join(', ');
    expect(await contentOf(sink.client, table, columns, order), `seed ${SEED}`).toEqual(
      await contentOf(source.client, table, columns, order),
    );
  }
}, 600_000);

test(`after ${ROUNDS} kills of random processes in append each initial row and each change is there once`, async () => {
  const { source, sink, host } = await begin('append');

  await underKills(host, source.client);

  for (const table of Object.keys(TABLES)) {
    expect(await appendMistakes(source.client, sink.client, table), `seed ${SEED}`).toEqual([]);
  }
}, 600_000);

async function begin(writeMode: 'upsert' | 'append') {
  const source = await freshDatabase(inject('postgres18'), 'kills_src');
  const sink = await freshDatabase(inject('postgres18'), 'kills_dst');
  await createTables(source.client, { rows: ROWS, identity: writeMode === 'append' ? 'full' : 'default' });
  const host = new HostProcess({
    pipeline: {
      pipeline: 'kills',
      source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
      sink: { type: 'postgres', uri: sink.uri, flush: { rows: 500, interval: '200ms' } },
      supervision: { backoff: { first: '50ms', max: '200ms' }, breaker: { failures: 1000 } },
      tables: Object.keys(TABLES).map((table) => ({
        source: `public.${table}`,
        target: table,
        writeMode,
        ...(writeMode === 'upsert' ? { chunkRows: 200 } : {}),
      })),
    },
  });
  return { source, sink, host };
}

/** Changes begin before the snapshot and go on after the last kill; a host that was killed is started again. */
async function underKills(host: HostProcess, client: pg.Client): Promise<void> {
  const random = seeded(SEED);
  const workload = new Workload(client, { seed: SEED, rows: ROWS });
  for (let i = 0; i < 20; i++) await workload.transaction();
  workload.start();
  host.start();
  const died = { source: 0, sink: 0, host: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setTimeout(resolve, 50 + random() * 900));
    const victim = (['source', 'sink', 'host'] as const)[Math.floor(random() * 3)]!;
    await kill(host, victim, random() < 0.3);
    died[victim]++;
  }
  await workload.stop();
  await untilCaughtUp(host);
  // A run that never hit one of the three has proven nothing about it.
  if (ROUNDS >= 20)
    for (const count of Object.values(died)) expect(count, `seed ${SEED}: ${JSON.stringify(died)}`).toBeGreaterThan(2);
  expect(workload.transactions).toBeGreaterThan(ROUNDS);
}

/** The last run ends by itself, once everything that was committed at the source is durable in the destination. */
async function untilCaughtUp(host: HostProcess): Promise<void> {
  await host.stop();
  expect(await host.start('--until-caught-up').exitCode(), host.output.slice(-4000)).toBe(0);
}

import { rmSync } from 'node:fs';
import type pg from 'pg';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess } from './host-process.ts';
import { contentOf, createTables, differences, seeded, Workload } from './workload.ts';

const ROUNDS = Number(process.env['URUTAU_TEST_KILLS'] ?? 50);
const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const ROWS = 6_000;

const TABLES = {
  accounts: { key: ['id'], columns: 'id, uid, rev, name, amount, at, ok, big, doc, score' },
  items: { key: ['sku', 'region'], columns: 'sku, region, uid, rev, payload' },
} as const;

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
    died[await killOne(host, Math.floor(random() * 3), random() < 0.3)]++;
  }
  await workload.stop();
  await untilCaughtUp(host);
  // A run that never hit one of the three has proven nothing about it.
  if (ROUNDS >= 20)
    for (const count of Object.values(died)) expect(count, `seed ${SEED}: ${JSON.stringify(died)}`).toBeGreaterThan(2);
  expect(workload.transactions).toBeGreaterThan(ROUNDS);
}

/** Answers what died. A driver is waited for: on a busy machine nothing but hosts would die otherwise. */
async function killOne(host: HostProcess, which: number, forget: boolean): Promise<'source' | 'sink' | 'host'> {
  if (which === 2) {
    await host.kill();
    if (forget) rmSync(host.stateDir, { recursive: true, force: true });
    host.start();
    return 'host';
  }
  const role = which === 0 ? 'source' : 'sink';
  const status = await host.until(`a ${role} driver`, (now) => now[role].pid !== null);
  try {
    process.kill(status[role].pid!, 'SIGKILL');
  } catch {
    // It has just died of an earlier kill.
  }
  return role;
}

/** The last run ends by itself, once everything that was committed at the source is durable in the destination. */
async function untilCaughtUp(host: HostProcess): Promise<void> {
  await host.stop();
  expect(await host.start('--until-caught-up').exitCode(), host.output.slice(-4000)).toBe(0);
}

/**
 * Per row of the source (`uid`): its changes in the destination, in order, must be the last ones of its history, and
 * its row in the snapshot must be what the changes before them made of it. Answers what is wrong, in words.
 */
async function appendMistakes(source: pg.Client, sink: pg.Client, table: string): Promise<string[]> {
  const { rows: truth } = await source.query(`select uid, op, rev from truth where tab = '${table}' order by n`);
  const { rows: written } = await sink.query(
    `select coalesce(uid, _old_uid) as uid, _urutau_op as op, rev, _urutau_phase as phase
     from ${table} order by _urutau_position, rev`,
  );
  const histories = groupByUid(truth);
  const arrived = groupByUid(written);
  const mistakes: string[] = [];
  for (const [uid, history] of histories) {
    const rows = arrived.get(uid) ?? [];
    const initial = rows.filter(({ phase }) => phase === 'snapshot');
    const changes = rows.filter(({ phase }) => phase !== 'snapshot').map(said);
    const before = history.slice(0, history.length - changes.length);
    const after = history.slice(history.length - changes.length).map(said);
    if (changes.join() !== after.join()) mistakes.push(`${table} ${uid}: changes ${changes}; expected ${after}`);
    const last = before.at(-1);
    const expected = last === undefined || last.op === 'd' ? [] : [last.rev];
    if (initial.map(({ rev }) => rev).join() !== expected.join()) {
      mistakes.push(`${table} ${uid}: snapshot revs ${initial.map(({ rev }) => rev)}; expected ${expected}`);
    }
    if (mistakes.length > 5) break;
  }
  return mistakes;
}

interface Change {
  uid: string;
  op: string;
  rev: string;
  phase?: string;
}

function groupByUid(rows: Change[]): Map<string, Change[]> {
  const groups = new Map<string, Change[]>();
  for (const row of rows) {
    const group = groups.get(row.uid);
    if (group) group.push(row);
    else groups.set(row.uid, [row]);
  }
  return groups;
}

/** A delete's number is the source's alone. */
function said({ op, rev }: Change): string {
  return op === 'd' ? 'd' : `${op}${rev}`;
}

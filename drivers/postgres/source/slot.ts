import { UrutauError } from '@urutau/sdk';
import pg from 'pg';
import { type Lsn, parseLsn } from '../lsn.ts';
import type { Query } from './catalog.ts';

export const PLUGIN = 'pgoutput';

export interface Slot {
  plugin: string | null;
  type: string;
  database: string | null;
  /** Process of the server that reads it now. */
  activePid: number | null;
  /** Changes of transactions that committed before it are gone. */
  confirmed: Lsn | null;
  /** `lost`: the server has removed log that it needs. */
  walStatus: string | null;
}

/** Null when there is none of that name. */
export async function loadSlot(query: Query, name: string): Promise<Slot | null> {
  const [row] = await query(`
    SELECT plugin, slot_type, database, active_pid, confirmed_flush_lsn, wal_status
    FROM pg_replication_slots WHERE slot_name = ${pg.escapeLiteral(name)}`);
  if (!row) return null;
  const [plugin, type, database, activePid, confirmed, walStatus] = row;
  return {
    plugin: plugin!,
    type: type!,
    database: database!,
    activePid: activePid ? Number(activePid) : null,
    confirmed: confirmed ? parseLsn(confirmed) : null,
    walStatus: walStatus!,
  };
}

/** Answers the consistent point: every transaction that commits from there on will be decoded. */
export async function createSlot(query: Query, name: string): Promise<Lsn> {
  const [row] = await query(
    `SELECT lsn FROM pg_create_logical_replication_slot(${pg.escapeLiteral(name)}, '${PLUGIN}')`,
  );
  return parseLsn(row![0]!);
}

/** Lets go of the log before `lsn`. The slot must not be in use. */
export async function advanceSlot(query: Query, name: string, lsn: string): Promise<void> {
  await query(`SELECT pg_replication_slot_advance(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(lsn)})`);
}

export async function dropSlot(query: Query, name: string): Promise<void> {
  await query(`SELECT pg_drop_replication_slot(${pg.escapeLiteral(name)})`);
}

/**
 * Waits until nobody reads the slot: the walsender of a connection that has just ended takes a moment. `ownPids` are
 * walsenders that this process started; one that lingers (it may be deep in a long transaction) is ended.
 */
export async function waitForFreeSlot(
  query: Query,
  name: string,
  {
    ownPids,
    waitMs,
    now,
    sleep,
  }: { ownPids: ReadonlySet<number>; waitMs: number; now: () => number; sleep: (ms: number) => Promise<void> },
): Promise<void> {
  const until = now() + waitMs;
  for (;;) {
    const pid = (await loadSlot(query, name))?.activePid ?? null;
    if (pid === null) return;
    if (ownPids.has(pid)) await query(`SELECT pg_terminate_backend(${pid})`);
    else if (now() > until) throw slotInUse(name, pid);
    await sleep(20);
  }
}

export function slotInUse(name: string, pid: number): UrutauError {
  return new UrutauError(
    'source-unavailable',
    `replication slot ${name}: in use by another process (server process ${pid})`,
    {
      remedy: 'Stop the other host or tool that reads this slot, or give this pipeline a slotName of its own.',
    },
  );
}

import { type AssignAnswer, type AssignRequest, faultPoint, UrutauError } from '@urutau/sdk';
import { type Lsn, parseLsn } from '../lsn.ts';
import { decodeOffsetBase64, encodeOffsetBase64, type Offset } from '../offset.ts';
import { type CatalogTable, loadTables, type Query } from './catalog.ts';
import type { Clock } from './clock.ts';
import type { SourceSettings } from './config.ts';
import { loadServerFacts, type PreflightInput, preflight, preflightError, type ServerFacts } from './preflight.ts';
import { loadPublication, markSlotOurs, type Publication, syncPublication } from './publication.ts';
import { type RowShape, shapeOfTable } from './row-shape.ts';
import { advanceSlot, createSlot, loadSlot, type Slot, slotInUse, waitForFreeSlot } from './slot.ts';
import { loadLeafFacts } from './storage.ts';

/** One table with all that is needed to read its changes. */
export interface AssignedTable {
  table: string;
  catalog: CatalogTable;
  rowShape: RowShape;
  start: Offset;
  /** In the publication and claiming the log, but not read. */
  hold: boolean;
}

export interface AssignContext {
  query: Query;
  settings: SourceSettings;
  clock: Clock;
  /** Walsenders that this process started. */
  ownPids: ReadonlySet<number>;
}

/** What the catalog and the slots say, found free of failures. */
export interface CheckedAssignment {
  server: ServerFacts;
  slot: Slot | null;
  publication: Publication | null;
  tables: (Omit<AssignedTable, 'start'> & { from: Offset | null })[];
}

/** Looks at everything and changes nothing. Throws one error that lists every failure (B4). */
export async function checkAssignment({ tables }: AssignRequest, context: AssignContext): Promise<CheckedAssignment> {
  const { query, settings, ownPids } = context;
  const names = tables.map(({ table }) => table);
  const catalog = await loadTables(query, names);
  const input: PreflightInput = {
    server: await loadServerFacts(query),
    slotName: settings.slotName,
    slot: await settledSlot(context),
    publicationName: settings.publicationName,
    publicationManaged: settings.publicationManaged,
    publication: await loadPublication(query, settings.publicationName),
    tables: await Promise.all(
      tables.map(async ({ table, fromOffset, hold = false }) => ({
        table,
        hold,
        from: fromOffset === undefined ? null : decodeOffsetBase64(fromOffset),
        catalog: catalog.get(table) ?? null,
        leaves: catalog.get(table)?.kind === 'p' ? await loadLeafFacts(query, table) : [],
      })),
    ),
    ownPids,
  };
  const { server, slot, publication } = input;
  const failures = preflight(input);
  // Alone it may pass by itself: a host that died without a word is noticed by the server only after a while.
  if (failures.length === 1 && slot && isInUse(slot, ownPids)) throw slotInUse(settings.slotName, slot.activePid!);
  if (failures.length > 0) throw preflightError(failures);
  return {
    server,
    slot,
    publication,
    tables: input.tables.map(({ table, from, hold }) => ({
      table,
      from,
      catalog: catalog.get(table)!,
      rowShape: shapeOfTable(catalog.get(table)!),
      hold,
    })),
  };
}

/**
 * Makes publication and slot and finds where each table begins. The publication comes first, because the log is decoded
 * with the catalog of its time: a slot that is older than its publication cannot be read.
 */
export async function carryOut(checked: CheckedAssignment, context: AssignContext): Promise<AssignedTable[]> {
  const { query, settings, clock, ownPids } = context;
  const { slotName, publicationName, publicationManaged } = settings;
  const { publication, slot } = checked;
  const names = checked.tables.map(({ table }) => table);
  const added =
    publicationManaged && (publication === null || publication.ours)
      ? await syncPublication(query, publicationName, names, publication)
      : [];
  if (slot === null) {
    // When every table has lost its position there is nothing to keep log for, until one is copied anew.
    if (names.length === 0) return [];
    const consistentPoint = await createSlot(query, slotName);
    if (publicationManaged && (publication === null || publication.ours)) await markSlotOurs(query, publicationName);
    faultPoint('source.slot.made');
    return checked.tables.map(({ from, ...table }) => ({
      ...table,
      start: from ?? { lsn: consistentPoint, index: 0n },
    }));
  }
  const addedOids = checked.tables.filter(({ table }) => added.includes(table)).map(({ catalog }) => catalog.oid);
  await waitForWriters(query, addedOids, clock);
  const now = await currentPosition(query);
  if (publication === null && publicationManaged) {
    // The log before the publication cannot be read through it, and no table asks for it: preflight saw to that.
    await waitForFreeSlot(query, slotName, { ownPids, waitMs: SLOT_WAIT_MS, now: clock.now, sleep: clock.sleep });
    await advanceSlot(query, slotName, now.text);
  }
  return checked.tables.map(({ from, ...table }) => ({
    ...table,
    // A new table begins now and not at the slot's position: what was written before it was published is not decoded
    // for it, so an older start would promise changes that never come.
    start: from ?? { lsn: now.lsn, index: 0n },
  }));
}

export function answerOf({ server }: CheckedAssignment, tables: readonly AssignedTable[]): AssignAnswer {
  return {
    source: `postgres:${server.systemIdentifier}/${server.database}`,
    tables: Object.fromEntries(
      tables.map(({ table, start, rowShape, catalog }) => [
        table,
        {
          start: encodeOffsetBase64(start),
          schemaId: rowShape.shape.schemaId,
          ...(catalog.estimatedRows === null ? {} : { estimatedRows: catalog.estimatedRows }),
        },
      ]),
    ),
  };
}

/** With `check`, where a table would begin if it were assigned now. */
export async function startsOf({ tables }: CheckedAssignment, query: Query): Promise<AssignedTable[]> {
  const { lsn } = await currentPosition(query);
  return tables.map(({ from, ...table }) => ({ ...table, start: from ?? { lsn, index: 0n } }));
}

const SLOT_WAIT_MS = 5_000;
const WRITERS_WAIT_MS = 60_000;

/** A process that has just been killed leaves its walsender for a moment, which is no failure. */
async function settledSlot({ query, settings: { slotName }, clock, ownPids }: AssignContext): Promise<Slot | null> {
  const until = clock.now() + SLOT_WAIT_MS;
  for (;;) {
    const slot = await loadSlot(query, slotName);
    if (slot === null || !isInUse(slot, ownPids) || clock.now() > until) return slot;
    await clock.sleep(100);
  }
}

function isInUse({ activePid }: Slot, ownPids: ReadonlySet<number>): boolean {
  return activePid !== null && !ownPids.has(activePid);
}

/**
 * Waits for the transactions that wrote to a table before it was published. Their earlier changes are decoded without
 * the publication, yet they commit after the table's start: a snapshot must come after them.
 */
async function waitForWriters(query: Query, oids: readonly number[], { now, sleep }: Clock): Promise<void> {
  if (oids.length === 0) return;
  const until = now() + WRITERS_WAIT_MS;
  const writers = async (): Promise<string[]> => {
    const rows = await query(`
      SELECT DISTINCT l.virtualtransaction FROM pg_locks l
      WHERE l.locktype = 'relation' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
        AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.relation IN (SELECT t.oid FROM unnest(ARRAY[${oids.join(', ')}]::oid[]) t(oid)
          UNION SELECT p.relid FROM unnest(ARRAY[${oids.join(', ')}]::oid[]) t(oid), pg_partition_tree(t.oid) p)`);
    return rows.map(([transaction]) => transaction!);
  };
  let waitingFor = await writers();
  while (waitingFor.length > 0) {
    if (now() > until) {
      throw new UrutauError(
        'source-unavailable',
        `a transaction that writes to a new table has not ended for ${WRITERS_WAIT_MS / 1000} s`,
        {
          remedy: 'End the long transaction at the source; the host tries again by itself.',
        },
      );
    }
    await sleep(20);
    const still = new Set(await writers());
    waitingFor = waitingFor.filter((transaction) => still.has(transaction));
  }
}

async function currentPosition(query: Query): Promise<{ text: string; lsn: Lsn }> {
  const [row] = await query('SELECT pg_current_wal_insert_lsn()');
  return { text: row![0]!, lsn: parseLsn(row![0]!) };
}

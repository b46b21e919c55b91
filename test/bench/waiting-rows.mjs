// Changes that wait in a replication slot, to be read again and again: each run drains its own copy of the slot.
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { product } from './product.mjs';
import { PUBLICATION, TABLE } from './table.mjs';

const MASTER = 'bench_master';
const SLOT = 'bench_run';
const TERMINATE_MS_MAX = 10_000;
const STORE_FILES = ['positions.db', 'positions.db-wal', 'positions.db-shm'];

/**
 * Takes a place in the log before the rows come: a short run of the product itself, with an empty or prefilled table,
 * leaves a slot and a checkpoint. `load` then writes what waits. Answers how to get a fresh copy of both.
 */
export async function waitingRows({ server, database, folder, sink, load }) {
  const name = `waiting-${database}`;
  const pipeline = streamPipeline({ server, database, slot: MASTER, sink });
  const first = product({ folder, name, pipeline });
  await first.untilCaughtUp();
  await load();
  await server.query(database, "SELECT pg_logical_emit_message(true, 'bench', 'end')");
  const [{ lsn }] = await server.query(database, 'SELECT pg_current_wal_flush_lsn() AS lsn');
  await server.checkpoint();
  return {
    endLsn: lsn,
    slot: SLOT,
    /** Answers the place in the log from which the copy is read. */
    async copySlot() {
      await dropSlot(server, database, SLOT);
      const copy = `SELECT lsn FROM pg_copy_logical_replication_slot('${MASTER}', '${SLOT}')`;
      const [{ lsn: startLsn }] = await server.query(database, copy);
      return startLsn;
    },
    /** The product at the place of the first run, with the slot's copy. */
    runner(runName, { profile, sink: ownSink = sink } = {}) {
      const home = join(folder, runName);
      rmSync(home, { recursive: true, force: true });
      mkdirSync(home, { recursive: true });
      for (const file of STORE_FILES.filter((file) => existsSync(join(first.home, file)))) {
        cpSync(join(first.home, file), join(home, file));
      }
      const own = streamPipeline({ server, database, slot: SLOT, sink: ownSink });
      return product({ folder, name: runName, pipeline: own, keepState: true, profile });
    },
    async drop() {
      for (const slot of [SLOT, MASTER]) await dropSlot(server, database, slot);
    },
  };
}

function streamPipeline({ server, database, slot, sink }) {
  return {
    source: {
      kind: 'postgres',
      slotName: slot,
      snapshotMode: 'none',
      postgres: { ...server.address(database), publication: { name: PUBLICATION, create: 'existing' } },
    },
    sink,
    tables: [{ source: TABLE, target: 'bench_rows' }],
  };
}

/** Also one whose reader has just ended: the server may not have noticed yet. */
export async function dropSlot(server, database, name) {
  await server.query(
    database,
    `SELECT pg_terminate_backend(active_pid, ${TERMINATE_MS_MAX})
     FROM pg_replication_slots WHERE slot_name = '${name}' AND active`,
  );
  await server.query(
    database,
    `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '${name}'`,
  );
}

// Other engines on the same rows, in the same rounds. What they read is counted, not compared.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { measure } from './measure.mjs';
import { PUBLICATION, TABLE } from './table.mjs';
import { dropSlot } from './waiting-rows.mjs';

const NODE_CLIENT = fileURLToPath(new URL('./peers/pg-logical-replication.mjs', import.meta.url));
const SLOT = 'bench_peer';
const OFFSET_KEY = 'bench';
const SECONDS_MAX = 600;

/** Contenders that drain a copy of the slot in which `rows` changes wait. */
export function streamingPeers({ server, database, folder, tools, waiting, rows }) {
  const nodeClient = async () => {
    await waiting.copySlot();
    const args = [NODE_CLIENT, server.uri(database), waiting.slot, PUBLICATION, String(rows)];
    return await measure(process.execPath, args, { server, role: 'peer', secondsMax: SECONDS_MAX });
  };
  const cdcflow = async () => {
    const offset = storedOffset(folder, await waiting.copySlot());
    return await cdcflowToStdout({ server, database, folder, tools, rows, slot: waiting.slot, offset });
  };
  return [peer('pg-logical-replication', rows, nodeClient), ...(tools.cdcflow ? [peer('cdcflow', rows, cdcflow)] : [])];
}

/** Contenders that copy a table of `rows` rows, whose publication is there. */
export function snapshotPeers({ server, database, folder, tools, rows }) {
  const cdcflow = async () => {
    await dropSlot(server, database, SLOT);
    try {
      return await cdcflowToStdout({ server, database, folder, tools, rows, slot: SLOT, offset: { type: 'memory' } });
    } finally {
      await dropSlot(server, database, SLOT);
    }
  };
  return tools.cdcflow ? [peer('cdcflow', rows, cdcflow)] : [];
}

/** Says once for a workload which peers are not here. */
export function skipAbsentPeers(workload, { tools, contest }) {
  if (!tools.cdcflow) contest.skip(`${workload} cdcflow`, 'neither on the PATH nor named by URUTAU_BENCH_CDCFLOW');
}

function peer(name, rows, run) {
  return { name, peer: true, run: async () => ({ rows, ...(await run()) }) };
}

/** A line a row. It goes on until it is told to end. */
async function cdcflowToStdout({ server, database, folder, tools, rows, slot, offset }) {
  const { host, port, username } = server.address(database);
  const source = {
    type: 'postgres',
    ...{ host, port, database, user: username },
    slot_name: slot,
    publication_name: PUBLICATION,
    create_publication: false,
    tables: [TABLE],
  };
  const file = join(folder, 'cdcflow.json');
  writeFileSync(file, JSON.stringify({ source, sink: { type: 'stdout' }, offset }));
  return await measure(tools.cdcflow, ['job', 'run', '--standalone', '-c', file], {
    server,
    role: 'peer',
    env: { RUST_LOG: 'error' },
    untilLines: rows,
    secondsMax: SECONDS_MAX,
  });
}

/** Without a stored offset it would drop the slot and begin with a snapshot. */
function storedOffset(folder, lsn) {
  const path = join(folder, 'cdcflow.db');
  rmSync(path, { force: true });
  const store = new Database(path);
  store.exec('CREATE TABLE offsets (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at TEXT)');
  store.prepare('INSERT INTO offsets (key, value) VALUES (?, ?)').run(OFFSET_KEY, lsn);
  store.close();
  return { type: 'sqlite', path, key: OFFSET_KEY };
}

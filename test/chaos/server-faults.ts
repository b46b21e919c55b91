import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type PostgresServer, startPostgres } from '../../scripts/embedded-postgres.mjs';
import { HostProcess, waitFor } from '../integration/pipeline/host-process.ts';
import { createTables, differences, TABLES, Workload } from '../integration/pipeline/workload.ts';
import { type FreshDatabase, freshDatabase } from '../services/databases.ts';
import { type FaultyProxy, startProxy } from './proxy.ts';

export type ServerFault = 'restart' | 'crash' | 'cut' | 'refuse' | 'stall' | 'disk-full';

export interface ServerCase {
  side: 'source' | 'sink';
  fault: ServerFault;
}

export const SERVER_CASES: readonly ServerCase[] = (['source', 'sink'] as const).flatMap((side) =>
  (['restart', 'crash', 'cut', 'refuse', 'stall', 'disk-full'] as const).map((fault) => ({ side, fault })),
);

export function nameOfServerCase({ side, fault }: ServerCase): string {
  return WORDS[fault].replace('SIDE', side);
}

const WORDS: Record<ServerFault, string> = {
  restart: 'the server of the SIDE is restarted',
  crash: 'the server of the SIDE crashes and comes back',
  cut: 'all connections to the SIDE are cut, again and again',
  refuse: 'the SIDE refuses connections for a while',
  stall: 'the network to the SIDE stands still for a while',
  'disk-full': 'the disk of the SIDE is full for a while',
};

/** A small file system of its own is made by `mount`, which is not everybody's. */
export function diskFullUnavailable(): string | undefined {
  return process.platform === 'linux' && process.getuid?.() === 0 ? undefined : 'mounting a tmpfs needs Linux and root';
}

const ROWS = 300;
const TROUBLE_MS = 4_000;

/** Plays one fault of a server in a pipeline under load. Throws when the destination is not in the end what the source is. */
export async function playServerFault(played: ServerCase, seed: number): Promise<{ recoveredMs: number }> {
  const cleanups: (() => Promise<void>)[] = [];
  const atEnd = (cleanup: () => Promise<void>) => void cleanups.unshift(cleanup);
  try {
    return await run(played, seed, atEnd);
  } finally {
    for (const cleanup of cleanups) await cleanup().catch(() => {});
  }
}

type AtEnd = (cleanup: () => Promise<void>) => void;

async function run({ side, fault }: ServerCase, seed: number, atEnd: AtEnd): Promise<{ recoveredMs: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'urutau-chaos-'));
  chmodSync(folder, 0o755);
  atEnd(async () => rmSync(folder, { recursive: true, force: true }));
  const troubled = await troubledServer(folder, fault, atEnd);
  const calm = await startPostgres();
  atEnd(() => calm.close());
  const servers = {
    source: side === 'source' ? troubled.server : calm,
    sink: side === 'sink' ? troubled.server : calm,
  };
  const source = await freshDatabase(servers.source, 'chaos_src', atEnd);
  const sink = await freshDatabase(servers.sink, 'chaos_dst', atEnd);
  await createTables(source.client, { rows: ROWS, identity: 'default' });
  const workload = new Workload(await source.connect(), {
    seed,
    rows: ROWS,
    reconnect: () => connectTo(source, atEnd),
  });
  const through = (database: FreshDatabase, which: 'source' | 'sink') =>
    which === side ? database.uri.replace(`:${troubled.server.port}/`, `:${troubled.proxy.port}/`) : database.uri;
  const host = new HostProcess({
    folder,
    atEnd,
    pipeline: {
      pipeline: 'chaos',
      source: { kind: 'postgres', uri: through(source, 'source'), slotName: `s_${source.name}` },
      sink: { type: 'postgres', uri: through(sink, 'sink'), flush: { rows: 200, interval: '100ms' } },
      supervision: { stop: '5s', backoff: { first: '50ms', max: '200ms' }, breaker: { failures: 1000 } },
      tables: Object.keys(TABLES).map((table) => ({ source: `public.${table}`, target: table, chunkRows: 100 })),
    },
  });
  workload.start();
  host.start();
  await host.until('commits', ({ tables }) => tables.every(({ totals }) => totals.commits > 3));

  const printed = host.output.length;
  await trouble(fault, troubled);
  const healedMs = Date.now();
  await waitFor('a sign of the trouble', 30_000, async () => (sign(fault, troubled, host, printed) ? true : null));
  const before = workload.transactions;
  await waitFor('more changes', 60_000, async () => (workload.transactions >= before + 20 ? true : null));
  await workload.stop();
  await untilEqual(source, sink, host, atEnd);
  const code = await host.stop();
  if (code !== 0) throw new Error(`the host ended with ${code}:\n${host.output.slice(-3000)}`);
  return { recoveredMs: Date.now() - healedMs };
}

interface Troubled {
  server: PostgresServer;
  proxy: FaultyProxy;
  /** Takes all that is left on the server's disk, and gives it back. */
  disk: { fill(): void; free(): void } | null;
}

async function troubledServer(folder: string, fault: ServerFault, atEnd: AtEnd): Promise<Troubled> {
  const disk = fault === 'disk-full' ? smallDisk(join(folder, 'disk'), atEnd) : null;
  const server = await startPostgres(
    disk === null ? {} : { folder: join(folder, 'disk', 'server'), settings: { max_wal_size: '64MB' } },
  );
  atEnd(() => server.close());
  const proxy = await startProxy(server);
  atEnd(() => proxy.close());
  return { server, proxy, disk };
}

/** Enough for an empty server and its log, and not for much more. */
const DISK_SIZE = '256m';
const ROOM_LEFT_BYTES = 200_000;

function smallDisk(path: string, atEnd: AtEnd): { fill(): void; free(): void } {
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE},mode=755`, 'tmpfs', path]);
  atEnd(async () => void execFileSync('umount', ['-l', path]));
  const filler = join(path, 'filler');
  return {
    fill() {
      const file = openSync(filler, 'w');
      const block = Buffer.alloc(65_536);
      const { bavail, bsize } = statfsSync(path);
      for (let left = bavail * bsize - ROOM_LEFT_BYTES; left > 0; left -= block.length) writeSync(file, block);
      closeSync(file);
    },
    free: () => rmSync(filler, { force: true }),
  };
}

async function trouble(fault: ServerFault, { server, proxy, disk }: Troubled): Promise<void> {
  switch (fault) {
    case 'restart':
      return server.restart();
    case 'crash':
      await server.kill();
      return server.restart();
    case 'cut':
      for (let time = 0; time < 8; time++) {
        proxy.cut();
        await passing(TROUBLE_MS / 8);
      }
      return;
    case 'refuse':
      proxy.refuse();
      await passing(TROUBLE_MS);
      return proxy.heal();
    case 'stall':
      proxy.stall();
      await passing(TROUBLE_MS);
      return proxy.heal();
    case 'disk-full':
      disk!.fill();
      await passing(2 * TROUBLE_MS);
      disk!.free();
      // A server that cannot write its log ends.
      return server.restart();
  }
}

/** A fault that nobody felt has proven nothing. What stands still for a few seconds is only slow. */
function sign(fault: ServerFault, { server }: Troubled, { output }: HostProcess, printed: number): boolean {
  if (fault === 'stall') return true;
  if (fault === 'disk-full') return readFileSync(join(server.folder, 'postgres.log'), 'utf8').includes('No space left');
  return /session begins anew|driver failed/.test(output.slice(printed));
}

/** The trouble itself lasts: nothing is waited for. */
function passing(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function connectTo({ uri }: FreshDatabase, atEnd: AtEnd): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  atEnd(() => client.end());
  return client;
}

async function untilEqual(source: FreshDatabase, sink: FreshDatabase, host: HostProcess, atEnd: AtEnd): Promise<void> {
  const [theirs, ours] = [await connectTo(source, atEnd), await connectTo(sink, atEnd)];
  let found: string[] = [];
  await waitFor(
    'equality of source and destination',
    90_000,
    async () => {
      if (!host.alive) throw new Error(`the host ended:\n${host.output.slice(-3000)}`);
      found = [];
      for (const [table, { key, columns }] of Object.entries(TABLES)) {
        const classes = await differences(theirs, ours, table, table, [...key], columns);
        for (const [kind, keys] of Object.entries(classes)) {
          if (keys.length > 0) found.push(`${table} ${kind}: ${keys}`);
        }
      }
      return found.length === 0 ? true : null;
    },
    () => `${found.join('\n')}\n${host.output.slice(-3000)}`,
  );
}

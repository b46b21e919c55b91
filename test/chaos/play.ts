import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENV } from '@urutau/contract';
import { appendMistakes } from '../integration/pipeline/append-mistakes.ts';
import { HostProcess, waitFor } from '../integration/pipeline/host-process.ts';
import { createTables, differences, TABLES, Workload } from '../integration/pipeline/workload.ts';
import { type FreshDatabase, freshDatabase } from '../services/databases.ts';
import type { PostgresAddress } from '../services/postgres.ts';
import type { FaultCase } from './fault-cases.ts';

export interface Played {
  /** From the fault until whoever should have noticed it did, and who that was. */
  noticedMs: number;
  noticedBy: string;
  /** From the fault until the destination equalled the source. */
  recoveredMs: number;
}

const ROWS = 300;
const HEARTBEAT_MS = 1_000;
const MISSES = 3;
const STOP_MS = 2_000;
const READY_MS = 4_000;
/** A busy machine takes its time; what is found late by so much is still found. */
const SLACK_MS = 6_000;
/** How long drivers wait for a heartbeat, and how often they look. */
const WATCHDOG_MS = 16_000;

/**
 * Plays one fault in a pipeline under load: changes begin before the snapshot and go on after the fault. Throws when it
 * was not noticed in time, or when the destination is not in the end what the source is.
 */
export async function play(fault: FaultCase, servers: Servers, seed: number): Promise<Played> {
  const cleanups: (() => Promise<void>)[] = [];
  try {
    const scene = await setUp(fault, servers, seed, (cleanup) => void cleanups.unshift(cleanup));
    return await runScene(scene);
  } finally {
    for (const cleanup of cleanups) await cleanup().catch(() => {});
  }
}

export interface Servers {
  source: PostgresAddress;
  sink: PostgresAddress;
}

interface Scene {
  fault: FaultCase;
  source: FreshDatabase;
  sink: FreshDatabase;
  host: HostProcess;
  /** Another host of the same pipeline, as on another machine. */
  successor: () => HostProcess;
  /** Lines that the host wrote to its own stdout. */
  lines: string;
  workload: Workload;
}

async function setUp(
  fault: FaultCase,
  servers: Servers,
  seed: number,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'urutau-chaos-'));
  atEnd(async () => rmSync(folder, { recursive: true, force: true }));
  const source = await freshDatabase(servers.source, 'chaos_src', atEnd);
  const sink = await freshDatabase(servers.sink, 'chaos_dst', atEnd);
  await createTables(source.client, { rows: ROWS, identity: fault.pipeline === 'append' ? 'full' : 'default' });
  const lines = join(folder, 'rows.jsonl');
  const pipeline = pipelineFile(fault, source, sink);
  const newHost = (name: string): HostProcess => {
    mkdirSync(join(folder, name));
    return new HostProcess({ pipeline, folder: join(folder, name), stdout: lines, atEnd });
  };
  return {
    fault,
    source,
    sink,
    host: newHost('first'),
    successor: () => newHost('second'),
    lines,
    workload: new Workload(source.client, { seed, rows: ROWS }),
  };
}

function pipelineFile({ pipeline }: FaultCase, source: FreshDatabase, sink: FreshDatabase): Record<string, unknown> {
  const flush = { rows: 200, interval: '100ms' };
  return {
    pipeline: 'chaos',
    source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
    sink: pipeline === 'stdout' ? { type: 'stdout', flush } : { type: 'postgres', uri: sink.uri, flush },
    supervision: {
      heartbeat: `${HEARTBEAT_MS}ms`,
      misses: MISSES,
      ready: `${READY_MS}ms`,
      stop: `${STOP_MS}ms`,
      backoff: { first: '50ms', max: '200ms' },
      breaker: { failures: 1000 },
    },
    tables: Object.keys(TABLES).map((table) => ({
      source: `public.${table}`,
      target: table,
      writeMode: pipeline === 'append' ? 'append' : 'upsert',
      ...(pipeline === 'append' ? {} : { chunkRows: 100 }),
    })),
  };
}

async function runScene(scene: Scene): Promise<Played> {
  const { fault, host, workload } = scene;
  for (let i = 0; i < 10; i++) await workload.transaction();
  workload.start();
  host.startWith({ [ENV.fault]: `${fault.point}:${fault.nth}:${fault.act}` });
  if (fault.during === 'stop') {
    await host.until('commits', ({ tables }) => tables.every(({ totals }) => totals.commits > 3));
    process.kill(host.pid, 'SIGINT');
  }
  await waitFor(
    'the fault',
    60_000,
    async () => {
      if (played(host) !== null) return true;
      if (!host.alive) throw new Error(`the host ended before the fault:\n${host.output.slice(-3000)}`);
      return null;
    },
    () => host.output.slice(-3000),
  );
  const faultMs = Date.now();
  const noticedBy = await noticed(scene);
  const noticedMs = Date.now() - faultMs;
  const limitMs = limitOf(fault) + SLACK_MS;
  if (noticedMs > limitMs) throw new Error(`noticed after ${noticedMs} ms, expected within ${limitMs} ms`);
  const heir = await takenUp(scene);
  const reached = workload.transactions + 20;
  await waitFor('more changes', 30_000, async () => (workload.transactions >= reached ? true : null));
  await workload.stop();
  await untilEqual(scene, heir);
  const recoveredMs = Date.now() - faultMs;
  const code = await heir.stop();
  if (code !== 0) throw new Error(`the host ended with ${code}:\n${heir.output.slice(-3000)}`);
  return { noticedMs, noticedBy, recoveredMs };
}

/** What the host has printed since the fault, or null before it. */
function played({ output }: HostProcess): string | null {
  const at = output.indexOf('fault played: ');
  return at === -1 ? null : output.slice(at);
}

/** Waits until whoever should notice does, and answers who. */
async function noticed({ fault, host }: Scene): Promise<string> {
  const context = () => host.output.slice(-3000);
  if (fault.process === 'host' && fault.act !== 'stop') {
    await waitFor('the end of the host', 10_000, async () => (host.alive ? null : true), context);
    const { code, signal } = host.ended;
    const expected = fault.act === 'kill' ? signal === 'SIGKILL' : code === 0;
    if (!expected) throw new Error(`the host ended with ${code ?? signal}`);
    return 'whoever started the host';
  }
  if (fault.process === 'host') {
    const drivers = driversOf(host);
    await waitFor(
      'the end of the drivers',
      WATCHDOG_MS + SLACK_MS,
      async () => (drivers.some(runs) ? null : true),
      context,
    );
    return 'drivers, by their watchdog';
  }
  if (fault.during === 'stop') {
    await waitFor('the end of the host', 30_000, async () => (host.alive ? null : true), context);
    if (host.ended.code !== 0) throw new Error(`the host ended with ${host.ended.code}:\n${context()}`);
    return 'host, by its stop sequence';
  }
  const lostALink = fault.act === 'drop-reply' || fault.act === 'half-close';
  const words = lostALink ? 'session begins anew' : 'driver failed and is started again';
  await waitFor(words, 60_000, async () => (played(host)!.includes(words) ? true : null), context);
  if (lostALink) return 'host, by the stream or call that broke';
  return fault.act === 'stop' ? 'host, by heartbeats' : 'host, by the exit';
}

/** Processes of the drivers that the host has called ready. */
function driversOf({ output }: HostProcess): number[] {
  return [...output.matchAll(/"pid":(\d+),"msg":"driver ready"/g)].map(([, pid]) => Number(pid));
}

/** A host that stands still reaps nobody: a zombie runs no more. */
function runs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

/** How long noticing may take. */
function limitOf({ process, act, during }: FaultCase): number {
  if (act === 'stop' && process === 'host') return WATCHDOG_MS;
  if (act === 'stop') return during === 'stop' ? 2 * STOP_MS : READY_MS + HEARTBEAT_MS * MISSES;
  return 1_000;
}

/** The host that carries the pipeline from here on. */
async function takenUp(scene: Scene): Promise<HostProcess> {
  const { fault, host } = scene;
  if (fault.process === 'host' && fault.act === 'stop') return replaced(scene);
  if (host.alive) return host;
  // Nothing that a host leaves behind may be needed.
  if (fault.pipeline !== 'stdout') rmSync(host.stateDir, { recursive: true, force: true });
  return host.start();
}

/**
 * A host that stands still holds its drivers, until they miss its heartbeats. A successor begins beside it; then the
 * old one wakes and must not write any more: it ends when its tables are another's, and one that never came to write
 * any waits for the slot.
 */
async function replaced({ fault, host, successor }: Scene): Promise<HostProcess> {
  if (fault.pipeline === 'stdout') {
    // Its positions are in the state folder, which one host has at a time.
    await host.kill();
    return host.start();
  }
  const heir = successor().start();
  const writes = (commits: number) => commits > 1;
  await heir.until(
    'a commit of the successor',
    ({ tables }) => tables.every(({ totals }) => writes(totals.commits)),
    WATCHDOG_MS + 45_000,
  );
  process.kill(host.pid, 'SIGCONT');
  const woken = host.output.length;
  const waits = () => host.output.slice(woken).includes('in use by another process');
  await waitFor(
    'the end of the old host',
    60_000,
    async () => (!host.alive || waits() ? true : null),
    () => host.output.slice(-3000),
  );
  if (host.alive) {
    await host.kill();
    return heir;
  }
  const { code } = host.ended;
  const expected = fault.during === 'stop' ? 0 : 1;
  if (code !== expected) throw new Error(`the old host ended with ${code}:\n${host.output.slice(-3000)}`);
  return heir;
}

async function untilEqual(scene: Scene, heir: HostProcess): Promise<void> {
  let mistakes: string[] = [];
  await waitFor(
    'equality of source and destination',
    60_000,
    async () => {
      if (!heir.alive) throw new Error(`the host ended:\n${heir.output.slice(-3000)}`);
      mistakes = await mistakesOf(scene);
      return mistakes.length === 0 ? true : null;
    },
    () => `${mistakes.join('\n')}\n${heir.output.slice(-3000)}`,
  );
}

async function mistakesOf({ fault, source, sink, lines }: Scene): Promise<string[]> {
  const found: string[] = [];
  for (const [table, { key, columns }] of Object.entries(TABLES)) {
    if (fault.pipeline === 'append') {
      found.push(...(await appendMistakes(source.client, sink.client, table).catch(asMistake)));
    } else if (fault.pipeline === 'stdout') {
      found.push(...(await lineMistakes(source, table, lines)));
    } else {
      const classes = await differences(source.client, sink.client, table, table, [...key], columns).catch(asMistake);
      for (const [kind, keys] of Object.entries(classes)) {
        if (keys.length > 0) found.push(`${table} ${kind}: ${keys}`);
      }
    }
  }
  return found;
}

/** The target may not be there yet. */
function asMistake(error: Error): string[] {
  return [error.message];
}

/** The last line of each row must be what the source holds; lines may come more than once (at least once). */
async function lineMistakes({ client }: FreshDatabase, table: string, file: string): Promise<string[]> {
  const last = new Map<string, { op: string; rev: string }>();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const change = parsed(line);
    if (change === null || change.table !== table) continue;
    const { op, key, before, after } = change;
    const at = JSON.stringify(key);
    if (before && JSON.stringify(pick(before, key)) !== at) last.delete(JSON.stringify(pick(before, key)));
    if (op === 'd') last.delete(at);
    else last.set(at, { op, rev: String(after!['rev']) });
  }
  const { rows } = await client.query(`select rev::text as said from ${table} order by rev`);
  const expected = rows.map(({ said }) => said as string);
  const written = [...last.values()].map(({ rev }) => rev).sort((a, b) => Number(a) - Number(b));
  return written.join() === expected.join()
    ? []
    : [`${table}: ${written.length} rows in the lines, ${expected.length} in the source`];
}

interface Line {
  table: string;
  op: string;
  key: Record<string, unknown>;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
}

/** Null for a line that a kill has cut. */
function parsed(line: string): Line | null {
  try {
    return JSON.parse(line) as Line;
  } catch {
    return null;
  }
}

function pick(row: Record<string, unknown>, key: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.keys(key).map((name) => [name, row[name]]));
}

import { setTimeout as pause } from 'node:timers/promises';
import type { HostProgram } from '../services/host-program.ts';
import { chaos, type Deaths } from './chaos.ts';
import { Random, seeded } from './random.ts';
import type { OracleRun, Verdict } from './run.ts';

export interface Play {
  run: OracleRun;
  host: HostProgram;
  seed: number;
  runMs: number;
  settleMs: number;
  /** Kill processes at random meanwhile. */
  withChaos: boolean;
  /** Called every 15 s or so, and at each step. */
  progress?: (what: string) => void;
  /** Gives up. */
  signal?: AbortSignal;
}

export interface Played {
  verdict: Verdict;
  deaths: Deaths;
  /** Of the mutations. */
  seconds: number;
}

const PROGRESS_MS = 15_000;
const WATCH_MS = 200;

/** Plays a whole profile: mutations, a host that begins among them, the end, the verdict. The host lives on. */
export async function play(options: Play): Promise<Played> {
  const { run, host, seed, withChaos, progress } = options;
  const deaths: Deaths = { source: 0, sink: 0, host: 0 };
  const stop = new AbortController();
  let killing = Promise.resolve();
  try {
    progress?.('making and filling the tables');
    await run.start();
    const beganMs = performance.now();
    progress?.('mutations have begun; starting the host');
    host.start();
    const random = new Random(seeded(seed + 1));
    if (withChaos) killing = chaos(host, { random, deaths, signal: stop.signal });
    await mutate(options, { deaths, killing });
    stop.abort();
    await killing;
    await run.stop();
    const seconds = (performance.now() - beganMs) / 1_000;
    progress?.(`${Math.round(seconds)} s: ${inWords(run)}; waiting for the destination`);
    await settle(options);
    progress?.('comparing every row');
    return { verdict: await run.verdict(), deaths, seconds };
  } catch (error) {
    await run.abandon();
    throw error;
  } finally {
    // Or it would start a host that nobody ends.
    stop.abort();
    await killing.catch(() => {});
  }
}

/** Until the time is over, or something cannot go on; what, the caller finds. */
async function mutate(
  { run, host, runMs, withChaos, progress, signal }: Play,
  { deaths, killing }: { deaths: Deaths; killing: Promise<void> },
): Promise<void> {
  const beganMs = performance.now();
  let hasFailed = false;
  for (const part of [run.mutating, killing]) {
    part.catch(() => {
      hasFailed = true;
    });
  }
  for (let nextMs = PROGRESS_MS; performance.now() - beganMs < runMs && !hasFailed; ) {
    await pause(WATCH_MS);
    signal?.throwIfAborted();
    // Who kills it starts it again, and finds one that ended by itself.
    if (!withChaos) throwIfEnded(host);
    if (performance.now() - beganMs < nextMs) continue;
    nextMs += PROGRESS_MS;
    const kills = withChaos ? `; killed ${JSON.stringify(deaths)}` : '';
    progress?.(`${Math.round((performance.now() - beganMs) / 1_000)} s: ${inWords(run)}${kills}`);
  }
}

/** A host that ends is not waited for. */
async function settle({ run, host, settleMs, signal }: Play): Promise<void> {
  let isSettled = false;
  const settling = run.settle({ withinMs: settleMs }).finally(() => {
    isSettled = true;
  });
  settling.catch(() => {});
  for (; !isSettled; await pause(WATCH_MS)) {
    signal?.throwIfAborted();
    throwIfEnded(host);
  }
  await settling;
}

function throwIfEnded(host: HostProgram): void {
  if (!host.alive) throw new Error(`the host ended by itself:\n${host.output.slice(-4_000)}`);
}

function inWords(run: OracleRun): string {
  const { committed, undone, rows } = run.counts;
  const states = run.lastStatus?.tables.map(({ source, state }) => `${source} ${state}`).join(', ');
  return `${rows} rows in ${committed} transactions, ${undone} undone; ${states ?? 'no status of the host'}`;
}

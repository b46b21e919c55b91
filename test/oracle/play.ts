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
  /** Ends the mutations early. */
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
  try {
    return await playThrough(options);
  } catch (error) {
    await options.run.abandon();
    throw error;
  }
}

async function playThrough({ run, host, seed, runMs, settleMs, withChaos, progress, signal }: Play): Promise<Played> {
  const deaths: Deaths = { source: 0, sink: 0, host: 0 };
  progress?.('making and filling the tables');
  await run.start();
  const beganMs = performance.now();
  progress?.('mutations have begun; starting the host');
  host.start();
  const stop = new AbortController();
  const random = new Random(seeded(seed + 1));
  const killing = withChaos ? chaos(host, { random, deaths, signal: stop.signal }) : Promise.resolve();
  let failure: unknown = null;
  run.mutating.catch((error) => {
    failure = error;
  });
  killing.catch((error) => {
    failure = error;
  });
  for (let nextMs = PROGRESS_MS; performance.now() - beganMs < runMs && failure === null && !signal?.aborted; ) {
    await pause(WATCH_MS);
    // Who kills it starts it again, and finds one that ended by itself.
    if (!withChaos) throwIfEnded(host);
    if (performance.now() - beganMs < nextMs) continue;
    nextMs += PROGRESS_MS;
    const kills = withChaos ? `; killed ${JSON.stringify(deaths)}` : '';
    progress?.(`${Math.round((performance.now() - beganMs) / 1_000)} s: ${inWords(run)}${kills}`);
  }
  stop.abort();
  await killing;
  await run.stop();
  const seconds = (performance.now() - beganMs) / 1_000;
  progress?.(`${Math.round(seconds)} s: ${inWords(run)}; waiting for the destination`);
  let isSettled = false;
  const settling = run.settle({ withinMs: settleMs }).finally(() => {
    isSettled = true;
  });
  settling.catch(() => {});
  for (; !isSettled; await pause(WATCH_MS)) throwIfEnded(host);
  await settling;
  progress?.('comparing every row');
  const verdict = await run.verdict();
  return { verdict, deaths, seconds };
}

function throwIfEnded(host: HostProgram): void {
  if (!host.alive) throw new Error(`the host ended by itself:\n${host.output.slice(-4_000)}`);
}

function inWords(run: OracleRun): string {
  const { committed, undone, rows } = run.counts;
  const states = run.lastStatus?.tables.map(({ source, state }) => `${source} ${state}`).join(', ');
  return `${rows} rows in ${committed} transactions, ${undone} undone; ${states ?? 'no status of the host'}`;
}

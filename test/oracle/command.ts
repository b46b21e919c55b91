import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { startPostgres } from '../../scripts/embedded-postgres.mjs';
import { HostProgram } from '../services/host-program.ts';
import { type Options, parseOptions, reproOf, USAGE } from './options.ts';
import { oraclePipeline } from './pipeline.ts';
import { play } from './play.ts';
import { PostgresDestination } from './postgres/destination.ts';
import { PostgresSource } from './postgres/source.ts';
import { PROFILES } from './profiles.ts';
import { OracleRun } from './run.ts';
import { summary } from './summary.ts';

export interface Tools {
  startPostgres: typeof startPostgres;
  postgresUri: (address: Awaited<ReturnType<typeof startPostgres>>, database?: string) => string;
  /** The bundled host. */
  hostProgram: string;
  signal: AbortSignal;
  print: (line: string) => void;
}

/** `npm run oracle`: its own servers, the bundled host, one profile. Answers the exit code. */
export async function oracle(args: readonly string[], tools: Tools): Promise<number> {
  const options = parseOptions(args, () => Math.floor(Math.random() * 2 ** 31));
  if ('help' in options || 'problem' in options) {
    tools.print('problem' in options ? `oracle: ${options.problem}\n\n${USAGE}` : USAGE);
    return 'problem' in options ? 2 : 0;
  }
  const closers: (() => unknown)[] = [];
  try {
    return await playProfile(options, tools, closers);
  } catch (error) {
    tools.print(`\n${describe(error)}\nseed ${options.seed}; once more: ${reproOf(options)}`);
    return 1;
  } finally {
    while (closers.length > 0) await closers.pop()!();
  }
}

async function playProfile(options: Options, tools: Tools, closers: (() => unknown)[]): Promise<number> {
  const { minutes } = options;
  const whole = PROFILES[options.profile];
  const profile = minutes === undefined ? whole : { ...whole, runMs: minutes * 60_000 };
  const { print, signal } = tools;
  print(`profile ${options.profile}, seed ${options.seed}`);
  const folder = mkdtempSync(join(tmpdir(), 'urutau-oracle-'));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  // One server each, so that what is written is not in the log that is read.
  const source = await tools.startPostgres();
  closers.push(() => source.close());
  const sink = await tools.startPostgres();
  closers.push(() => sink.close());
  const [sourceUri, sinkUri] = [tools.postgresUri(source), tools.postgresUri(sink)];
  const host = new HostProgram({
    folder,
    main: tools.hostProgram,
    pipeline: oraclePipeline({ sourceUri, sinkUri, slotName: 'oracle', rows: profile.rows }),
  });
  closers.push(() => host.kill());
  const run = new OracleRun({
    ...profile,
    source: new PostgresSource(sourceUri),
    destination: new PostgresDestination(sinkUri),
    seed: options.seed,
    status: () => host.status(),
    demand: 'all',
    repro: reproOf(options),
  });
  const { runMs, settleMs } = profile;
  const { seed, chaos: withChaos } = options;
  const played = await play({ run, host, seed, runMs, settleMs, withChaos, signal, progress: print });
  print(summary(run, played, options));
  const { verdict, deaths } = played;
  const spared = Object.entries(deaths).flatMap(([victim, count]) => (withChaos && count === 0 ? [victim] : []));
  if (spared.length > 0) print(`\nnever killed: ${spared.join(', ')}: the run has shown nothing about it`);
  if (!verdict.ok) print(`\n${verdict.report}\n\nThe host's last words:\n${host.output.slice(-2_000)}`);
  return verdict.ok && spared.length === 0 ? 0 : 1;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${describe(error.cause)}`;
}

import { writeFileSync } from 'node:fs';
import { UrutauError } from '@urutau/contract';
import { type Command, Option } from 'commander';
import { serveControl } from '../control/server.ts';
import { DriverMetrics } from '../observe/driver-metrics.ts';
import type { Log } from '../observe/log.ts';
import { createLog } from '../observe/pino-log.ts';
import { HostMetrics } from '../observe/registry.ts';
import { scraper } from '../observe/scraper.ts';
import { serveObservation } from '../observe/server.ts';
import { Pipeline, type PipelineOutcome } from '../pipeline/pipeline.ts';
import type { PipelineStatus, TableStatus } from '../pipeline/status.ts';
import { notCarriedOut } from '../spec/not-carried-out.ts';
import { SpecError } from '../spec/problem.ts';
import type { CommandContext } from './command-context.ts';
import { destinationReader } from './destination-reader.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { hostStore } from './host-store.ts';
import { pipelineDrivers } from './pipeline-drivers.ts';
import { openPipeline, type PipelineOptions, printWarnings, withPipelineOptions } from './pipeline-options.ts';
import { runSummary } from './run-summary.ts';
import type { Shell } from './shell.ts';
import { makeStateFolder } from './state-folder.ts';
import { StatusLine } from './status-line.ts';
import { supervise } from './supervise.ts';
import { pauseLines, quarantineLines, tableLine } from './table-line.ts';
import { type SnapshotWatch, watchSnapshots } from './watch-snapshots.ts';

interface RunOptions extends PipelineOptions {
  metricsAddr?: string;
  logFormat: 'text' | 'json';
  untilCaughtUp?: boolean;
  summary?: string;
}

export function addRun(program: Command, { shell, exit }: CommandContext): void {
  const command = program.command('run').description('copy the tables of a pipeline, and follow their changes');
  withPipelineOptions(command, { logLevel: 'info' })
    .option('--metrics-addr <host:port>', 'serve /metrics, /healthz, /readyz and /statusz, such as 127.0.0.1:9187')
    .addOption(new Option('--log-format <format>', 'of the log on stderr').choices(['text', 'json']).default('text'))
    .option(
      '--until-caught-up',
      'end when everything that was there at the end of the last snapshot is in the destination',
    )
    .option('--summary <file>', 'write what was done, as JSON, at every end')
    .addHelpText('after', HELP)
    .action(async (options: RunOptions) => exit(await run(options, shell)));
}

const HELP = `
First says, table by table, what it is going to do. Runs until SIGINT or SIGTERM, which commit what is in flight; a
second one ends at once, which loses nothing either. Start it again to go on where it was.

Examples:
  urutau-host run -f shop.yaml
  urutau-host run -f shop.yaml --until-caught-up --summary done.json
  urutau-host run -f shop.yaml --metrics-addr 127.0.0.1:9187 --log-format json
`;

async function run(options: RunOptions, shell: Shell): Promise<ExitCode> {
  const { pipeline: spec, warnings, stateDir } = openPipeline(options, shell);
  printWarnings(warnings, shell);
  const refused = notCarriedOut(spec);
  if (refused.length > 0) throw new SpecError(refused);
  const drivers = await pipelineDrivers(spec, shell.places);
  makeStateFolder(stateDir);

  const startMs = shell.nowMs();
  const isText = options.logFormat === 'text';
  // Rows that a sink writes to the same terminal would break the line.
  const hasTerminal = shell.err.isTerminal && !(drivers.sink.manifest.stdout === 'host' && shell.out.isTerminal);
  const line = isText && hasTerminal ? new StatusLine(shell.err) : null;
  const plainLog = createLog({ level: options.logLevel, format: options.logFormat });
  const log = line === null ? plainLog : line.logAbove(plainLog);
  const say = (text: string) => {
    const write = () => shell.err.write(`${text}\n`);
    if (line === null) write();
    else line.above(write);
  };
  const store = hostStore(spec.store, stateDir);
  const stop = new AbortController();
  const reader = await destinationReader(spec, drivers, { log, random: shell.random, signal: stop.signal });
  const names = { source: drivers.source.manifest.name, sink: drivers.sink.manifest.name };
  const metrics = new HostMetrics({ status: () => pipeline.status(), drivers: names, wallMs: shell.wallMs });
  const pipeline: Pipeline = new Pipeline({
    name: spec.name,
    run: shell.randomId(),
    tables: spec.tables,
    snapshotMode: spec.source.snapshotMode,
    flush: spec.sink.flush,
    windowBytes: spec.windowBytes,
    deadLetters: spec.sink.deadLetters,
    readBack: reader,
    stopMs: spec.supervision.stopMs,
    untilCaughtUp: options.untilCaughtUp === true,
    supervisor: (role, connect) =>
      supervise(
        {
          role,
          driver: drivers[role],
          config: spec[role].config,
          settings: spec.supervision,
          log,
          random: shell.random,
        },
        connect,
      ),
    store: () => store.open(),
    log,
    nowMs: shell.nowMs,
    wallMs: shell.wallMs,
    random: shell.random,
    committed: (millis) => metrics.observeCommit(millis),
    announced: announcer(spec.tables, (text, fields) => (isText ? say(text) : log.info('plan', fields))),
  });
  const writeSummary = () => {
    if (options.summary === undefined) return;
    const seconds = (shell.nowMs() - startMs) / 1000;
    const usage = { host: shell.usage(), ...pipeline.resources() };
    writeSummaryFile(options.summary, runSummary(pipeline.status(), { seconds, usage }));
  };
  const off = shell.onInterrupt(() => {
    if (!stop.signal.aborted) {
      log.info('stopping: what is in flight is committed first; a second signal ends at once');
      stop.abort();
      return;
    }
    writeSummary();
    shell.exit(EXIT.interrupted);
  });
  try {
    const { metricsAddr } = options;
    const outcome = await controlled({ stateDir, pipeline, log }, () =>
      observed({ metricsAddr, pipeline, metrics, drivers: names, log }, () =>
        watched({ tables: () => pipeline.status().tables, line, log }, () => pipeline.run(stop.signal)),
      ),
    );
    return conclude(outcome, pipeline.status(), (text, fields) => (isText ? say(text) : log.info('end', fields)));
  } finally {
    off();
    store.close();
    writeSummary();
  }
}

/** Calls `say` for a plan that was not said before: a session that begins anew often has the same. */
function announcer(
  tables: readonly { source: string; target: string }[],
  say: (text: string, fields: Record<string, unknown>) => void,
): (table: string, plan: string) => void {
  const targets = new Map(tables.map(({ source, target }) => [source, target]));
  const said = new Map<string, string>();
  return (table, plan) => {
    if (said.get(table) === plan) return;
    said.set(table, plan);
    say(`${table} -> ${targets.get(table)}: ${plan}`, { table, target: targets.get(table), plan });
  };
}

/** While commands are answered. The socket refuses a second host, so it comes before anything is started. */
async function controlled<T>(options: Parameters<typeof serveControl>[0], work: () => Promise<T>): Promise<T> {
  const control = await serveControl(options);
  try {
    return await work();
  } finally {
    await control.close();
  }
}

interface Observed {
  readonly metricsAddr: string | undefined;
  readonly pipeline: Pipeline;
  readonly drivers: Readonly<Record<'source' | 'sink', string>>;
  readonly metrics: HostMetrics;
  readonly log: Log;
}

/** While scrapes are answered, where that is asked for. */
async function observed<T>(
  { metricsAddr, pipeline, metrics, drivers, log }: Observed,
  work: () => Promise<T>,
): Promise<T> {
  if (metricsAddr === undefined) return await work();
  const ofDrivers = new DriverMetrics({ clients: () => pipeline.clients, log });
  const scrape = scraper({ host: metrics, ofDrivers, drivers, log });
  const server = await serveObservation({ address: metricsAddr, pipeline, scrape, log });
  log.info('metrics are served', { address: server.address });
  try {
    return await work();
  } finally {
    await server.close();
    ofDrivers.close();
  }
}

/** While the progress of snapshots is shown. */
async function watched<T>(options: SnapshotWatch, work: () => Promise<T>): Promise<T> {
  const watch = watchSnapshots(options);
  try {
    return await work();
  } finally {
    watch.close();
  }
}

/** Says how it ended, table by table. Throws the error of a run that could not go on. */
function conclude(
  outcome: PipelineOutcome,
  { tables }: PipelineStatus,
  say: (text: string, fields: Record<string, unknown>) => void,
): ExitCode {
  for (const last of tables) {
    const table = last.state === 'waiting' ? { ...last, state: 'stopped' } : last;
    const { source, target, state, reason, totals } = table;
    say([tableLine(table), ...quarantineLines(table), ...pauseLines(table)].join('\n'), {
      table: source,
      target,
      state,
      reason,
      ...totals,
    });
  }
  if (outcome.kind === 'failed') throw outcome.error;
  const isUnfinished = ({ state, quarantined }: TableStatus) =>
    state === 'paused' || (outcome.kind === 'caught-up' && quarantined.keys > 0);
  return tables.some(isUnfinished) ? EXIT.unfinished : EXIT.fine;
}

function writeSummaryFile(file: string, summary: unknown): void {
  try {
    writeFileSync(file, `${JSON.stringify(summary, null, 2)}\n`);
  } catch (cause) {
    throw new UrutauError('config-invalid', `the summary cannot be written to ${file}: ${(cause as Error).message}`, {
      cause,
      remedy: 'Name a file in a folder that this user may write to.',
    });
  }
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import { memoryStore } from '../checkpoint/memory-store.ts';
import { control, NoHostRunning } from '../control/client.ts';
import { createLog } from '../observe/pino-log.ts';
import { openSink } from '../pipeline/sink/sink.ts';
import { openSource } from '../pipeline/source/source.ts';
import type { TableStatus } from '../pipeline/status.ts';
import { parseDuration } from '../spec/durations-and-sizes.ts';
import { notCarriedOut } from '../spec/not-carried-out.ts';
import { SpecError } from '../spec/problem.ts';
import { pause, systemClock } from '../supervisor/clock.ts';
import { type VerifiedTable, verifyPipeline } from '../verify/verify-pipeline.ts';
import type { CommandContext } from './command-context.ts';
import { describeError, exitCodeOf } from './describe-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { hostStore } from './host-store.ts';
import { interruptible } from './interruptible.ts';
import { json, type OutputFormat, outputOption } from './output-option.ts';
import { pipelineDrivers } from './pipeline-drivers.ts';
import { openPipeline, type PipelineOptions, printWarnings, withPipelineOptions } from './pipeline-options.ts';
import { readBack } from './read-back.ts';
import type { Shell } from './shell.ts';
import { StatusLine } from './status-line.ts';
import { tableNamed } from './table.ts';
import { verifiedText } from './verified-text.ts';
import { withDriver } from './with-driver.ts';

interface VerifyOptions extends PipelineOptions {
  tables?: string[];
  show: number;
  timeout: number;
  output: OutputFormat;
}

export function addVerify(program: Command, { shell, exit }: CommandContext): void {
  const command = program
    .command('verify')
    .description('compare source and destination, row by row where they differ, while both live');
  withPipelineOptions(command, { logLevel: 'warn' })
    .option('--tables <names>', 'only these tables, with commas between', (names) => names.split(','))
    .addOption(
      new Option('--show <n>', 'differences that are shown of each kind and table').argParser(wholeNumber).default(10),
    )
    .addOption(
      new Option('--timeout <duration>', 'how long the destination may stand still while it is waited for')
        .argParser(duration)
        .default(60_000, '60s'),
    )
    .addOption(outputOption())
    .addHelpText('after', HELP)
    .action(async (options: VerifyOptions) => exit(await verify(options, shell)));
}

const HELP = `
Reads both sides whole, and again only what differs, until it is certain. Changes nothing and needs no pause; it takes one
replication slot more at the source while it reads. Run it beside the host, which moves the destination on.

Exit codes:
  0    all tables are equal
  1    rows differ
  2    wrong configuration or environment
  3    nothing differs so far, but a table could not be compared, rows changed at every look, or it was interrupted

Examples:
  urutau-host verify -f shop.yaml
  urutau-host verify -f shop.yaml --tables public.orders,public.items --output json
`;

/** A table of any size is compared in a few dozen megabytes; rows beyond are looked at in turn. */
const LIMITS = { rowsMax: 500_000, looksMax: 8, namedMax: 10_000 };

async function verify(options: VerifyOptions, shell: Shell): Promise<ExitCode> {
  const startMs = shell.nowMs();
  const { pipeline, warnings, stateDir } = openPipeline(options, shell);
  printWarnings(warnings, shell);
  const refused = notCarriedOut(pipeline);
  if (refused.length > 0) throw new SpecError(refused);
  const tables = options.tables?.map((name) => tableNamed(name.trim(), pipeline)) ?? pipeline.tables;
  const drivers = await pipelineDrivers(pipeline, shell.places);
  const log = createLog({ level: options.logLevel, format: 'text' });
  const line = shell.err.isTerminal && options.output === 'text' ? new StatusLine(shell.err) : null;
  const store = hostStore(pipeline.store, stateDir);
  const supervised = (role: 'source' | 'sink') => ({
    role,
    driver: drivers[role],
    config: pipeline[role].config,
    settings: pipeline.supervision,
    log: line?.logAbove(log) ?? log,
    random: shell.random,
  });
  const verified: VerifiedTable[] = [];
  let isCut = false;
  try {
    await interruptible(shell, async (signal) => {
      const withReader = await readBack(supervised('sink'), signal);
      const withSource = withDriver(supervised('source'), signal);
      const withSink = withDriver(supervised('sink'), signal);
      return withReader((destination) =>
        withSource((source) =>
          withSink(async (sink) =>
            verifyPipeline({
              tables,
              snapshotMode: pipeline.source.snapshotMode,
              clients: { source, destination },
              source: await openSource(source, signal),
              sink: await openSink(sink, pipeline.name, () => store.existing() ?? memoryStore(), signal),
              commit: (table) => commitSoon(stateDir, table),
              limits: LIMITS,
              stillMs: options.timeout,
              signal,
              nowMs: shell.nowMs,
              pause: async (ms) => void (await pause(systemClock, ms, signal)),
              progress: (table, text) => line?.show(`${table}: ${text}`),
              verified: (table) => {
                verified.push(table);
                line?.show('');
                if (options.output === 'text') shell.out.write(verifiedText(table, options.show));
              },
            }),
          ),
        ),
      );
    });
  } catch (error) {
    // 1 means that rows differ, and this says nothing of that; what was found before it is not lost.
    if (verified.length === 0 && (error instanceof SpecError || exitCodeOf(error) === EXIT.wrong)) throw error;
    shell.err.write(describeError(error, { stack: options.logLevel === 'debug' }));
    isCut = true;
  } finally {
    line?.show('');
    store.close();
  }
  if (options.output === 'json' && (!isCut || verified.length > 0)) {
    const seconds = Math.round(shell.nowMs() - startMs) / 1000;
    const { peakMemoryBytes } = shell.usage();
    shell.out.write(json({ pipeline: pipeline.name, seconds, peakMemoryBytes, tables: verified }));
  }
  const code = codeOf(verified);
  return isCut && code === EXIT.fine ? EXIT.unfinished : code;
}

function codeOf(tables: readonly VerifiedTable[]): ExitCode {
  if (tables.some(({ result }) => result === 'different')) return EXIT.failed;
  return tables.every(({ result }) => result === 'equal') ? EXIT.fine : EXIT.unfinished;
}

/** The table's status at the host that runs on the state folder; null when none does. */
async function commitSoon(stateDir: string, table: string): Promise<TableStatus | null> {
  try {
    return await control(stateDir).commit(table);
  } catch (error) {
    if (error instanceof NoHostRunning) return null;
    throw error;
  }
}

function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number.');
}

function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('It must be a duration such as 500ms, 60s or 6m.');
}

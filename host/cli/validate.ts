import type { Command } from 'commander';
import { memoryStore } from '../checkpoint/memory-store.ts';
import { createLog } from '../observe/pino-log.ts';
import { notCarriedOut } from '../spec/not-carried-out.ts';
import { type Problem, renderProblem, SpecError } from '../spec/problem.ts';
import { type ConnectionCheck, checkConnections, type TableCheck } from './check-connections.ts';
import type { CommandContext } from './command-context.ts';
import { count } from './count.ts';
import { failureLines } from './describe-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { hostStore } from './host-store.ts';
import { interruptible } from './interruptible.ts';
import { json, type OutputFormat, outputOption } from './output-option.ts';
import { lookFor, pipelineDrivers } from './pipeline-drivers.ts';
import { type OpenedPipeline, openPipeline, type PipelineOptions, withPipelineOptions } from './pipeline-options.ts';
import type { Shell } from './shell.ts';
import { withDriver } from './with-driver.ts';

interface ValidateOptions extends PipelineOptions {
  connect?: boolean;
  output: OutputFormat;
}

export function addValidate(program: Command, { shell, exit }: CommandContext): void {
  const command = program
    .command('validate')
    .description('name every problem of a pipeline file at once, with its place and what to do');
  withPipelineOptions(command, { logLevel: 'warn' })
    .option('--connect', 'also start both drivers and ask both sides; nothing is changed')
    .addOption(outputOption())
    .addHelpText('after', HELP)
    .action(async (options: ValidateOptions) => exit(await validate(options, shell)));
}

const HELP = `
Examples:
  urutau-host validate -f shop.yaml
  urutau-host validate -f shop.yaml --connect
`;

interface Findings {
  valid: boolean;
  problems: readonly Problem[];
  warnings: readonly Problem[];
  /** Fields that \`run\` refuses, because this version does not carry them out. */
  notCarriedOut: readonly Problem[];
  connect: ConnectionCheck | null;
}

async function validate(options: ValidateOptions, shell: Shell): Promise<ExitCode> {
  const findings = await find(options, shell);
  if (options.output === 'json') shell.out.write(json({ file: options.file, ...findings }));
  else print(findings, options, shell);
  return findings.valid ? EXIT.fine : EXIT.wrong;
}

async function find(options: ValidateOptions, shell: Shell): Promise<Findings> {
  let opened: OpenedPipeline;
  try {
    opened = openPipeline(options, shell);
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    return { valid: false, problems: error.problems, warnings: [], notCarriedOut: [], connect: null };
  }
  const { pipeline } = opened;
  const refused = notCarriedOut(pipeline);
  // A driver of a kind that is not built in yet is spoken of already.
  const known = !refused.some(({ path }) => path === 'source.kind' || path === 'sink.type');
  const looked = known
    ? await Promise.all((['source', 'sink'] as const).map((role) => lookFor(pipeline, role, shell.places)))
    : [];
  const problems = looked.flatMap((side) => side.problems);
  const missing = looked.flatMap((side) => side.missing);
  // The file itself is in order when a driver is missing here; asking both sides is not possible then.
  const inTheWay = options.connect === true ? [...missing, ...refused] : [];
  const connect =
    options.connect === true && problems.length + inTheWay.length === 0 ? await ask(opened, options, shell) : null;
  const failed = connect !== null && [connect, ...connect.tables].some(({ failures }) => failures.length > 0);
  return {
    valid: problems.length + inTheWay.length === 0 && !failed,
    problems: options.connect === true ? [...problems, ...missing] : problems,
    warnings: options.connect === true ? opened.warnings : [...opened.warnings, ...missing],
    notCarriedOut: refused,
    connect,
  };
}

async function ask(
  { pipeline, stateDir }: OpenedPipeline,
  options: ValidateOptions,
  shell: Shell,
): Promise<ConnectionCheck> {
  const drivers = await pipelineDrivers(pipeline, shell.places);
  const log = createLog({ level: options.logLevel, format: 'text' });
  const store = hostStore(pipeline.store, stateDir);
  const supervised = (role: 'source' | 'sink') => ({
    role,
    driver: drivers[role],
    config: pipeline[role].config,
    settings: pipeline.supervision,
    log,
    random: shell.random,
  });
  try {
    return await interruptible(shell, (signal) =>
      checkConnections({
        pipeline,
        withSource: withDriver(supervised('source'), signal),
        withSink: withDriver(supervised('sink'), signal),
        store: () => store.existing() ?? memoryStore(),
      }),
    );
  } finally {
    store.close();
  }
}

function print(findings: Findings, { file, connect: asked }: ValidateOptions, { out, err }: Shell): void {
  const { valid, problems, warnings, notCarriedOut: refused, connect } = findings;
  for (const warning of warnings) err.write(`warning: ${renderProblem(warning)}\n`);
  for (const problem of problems) out.write(`${renderProblem(problem)}\n`);
  for (const problem of refused) out.write(`run refuses: ${renderProblem(problem)}\n`);
  if (connect !== null) out.write(connectionText(connect));
  if (valid) {
    const rest = refused.length > 0 ? `, but run refuses ${count(refused.length, 'field')}` : '';
    out.write(`${file} is valid${asked === true ? ', and both sides are ready' : ''}${rest}\n`);
  } else if (problems.length > 0) out.write(`${file} has ${count(problems.length, 'problem')}\n`);
  else out.write(`${file} cannot be run as things are\n`);
}

function connectionText({ failures, tables }: ConnectionCheck): string {
  const lines = [...failureLines(failures), ...tables.flatMap(tableLines)];
  return lines.map((line) => `${line}\n`).join('');
}

function tableLines({ source, target, plan, changes, targetChecked, failures }: TableCheck): string[] {
  const run = plan === null ? 'could not be found out' : `run would: ${[...changes, plan].join(', ')}`;
  return [
    `${source} -> ${target}: ${failures.length > 0 ? 'refused' : run}`,
    ...(targetChecked || plan === null
      ? []
      : ['  the target is checked when it runs: only then the source tells the columns']),
    ...failureLines(failures),
  ];
}

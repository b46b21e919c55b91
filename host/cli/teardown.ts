import { ACTION, asUrutauError, type TeardownAnswer, UrutauError } from '@urutau/contract';
import type { Command } from 'commander';
import { control, NoHostRunning } from '../control/client.ts';
import { createLog } from '../observe/pino-log.ts';
import type { Pipeline, TableSpec } from '../spec/pipeline.ts';
import { SpecError } from '../spec/problem.ts';
import type { CommandContext } from './command-context.ts';
import { describeError } from './describe-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { type HostStore, hostStore } from './host-store.ts';
import { interruptible } from './interruptible.ts';
import { lookFor } from './pipeline-drivers.ts';
import { type OpenedPipeline, openPipeline, type PipelineOptions, withPipelineOptions } from './pipeline-options.ts';
import type { Shell } from './shell.ts';
import { tableNamed } from './table.ts';
import { withDriver } from './with-driver.ts';

interface TeardownOptions extends PipelineOptions {
  tables?: string[];
  yes?: boolean;
}

export function addTeardown(program: Command, { shell, exit }: CommandContext): void {
  const command = program
    .command('teardown')
    .description('show what a pipeline made beside the data (slot, publication, checkpoints), then drop it');
  withPipelineOptions(command, { logLevel: 'warn' })
    .option('--tables <names>', 'only what belongs to these tables, with commas between', (names) => names.split(','))
    .option('--yes', 'drop it without asking')
    .addHelpText('after', HELP)
    .action(async (options: TeardownOptions) => exit(await teardown(options, shell)));
}

const HELP = `
Do it when a pipeline is over: a replication slot that nobody reads keeps the log, and fills the disk of the source.
Rows are never touched. A later run of the same file finds rows without a checkpoint in the targets, and refuses them.

Examples:
  urutau-host teardown -f shop.yaml
  urutau-host teardown -f shop.yaml --yes
`;

async function teardown(options: TeardownOptions, shell: Shell): Promise<ExitCode> {
  const opened = openPipeline(options, shell);
  const { pipeline, stateDir } = opened;
  const tables = options.tables?.map((name) => tableNamed(name.trim(), pipeline)) ?? 'all';
  await refuseBesideHost(opened);
  const store = hostStore(pipeline.store, stateDir);
  try {
    return await interruptible(shell, async (signal) => {
      const sides = [
        await driverSide('source', opened, options, shell, signal, tables),
        await driverSide('sink', opened, options, shell, signal, tables),
        storeSide(store, pipeline, tables),
      ];
      return await showThenDrop(sides, options, shell);
    });
  } finally {
    store.close();
  }
}

async function refuseBesideHost({ pipeline, stateDir }: OpenedPipeline): Promise<void> {
  const pid = await control(stateDir)
    .status()
    .then(
      (status) => status.pid,
      (error) => {
        if (error instanceof NoHostRunning) return null;
        throw error;
      },
    );
  if (pid === null) return;
  throw new UrutauError('precondition-failed', `a host of pipeline ${pipeline.name} still runs (pid ${pid})`, {
    remedy: 'Stop it first.',
  });
}

/** One place where something of the pipeline may lie. */
interface Side {
  readonly name: 'source' | 'sink' | 'store';
  /** Tells what is there with `check`, else removes it and tells what it removed. */
  teardown(check: boolean): Promise<string[]>;
}

async function driverSide(
  role: 'source' | 'sink',
  { pipeline }: OpenedPipeline,
  options: TeardownOptions,
  shell: Shell,
  signal: AbortSignal,
  tables: readonly TableSpec[] | 'all',
): Promise<Side> {
  const log = createLog({ level: options.logLevel, format: 'text' });
  const { config } = pipeline[role];
  const names = tables === 'all' ? tables : tables.map((table) => table[role === 'source' ? 'source' : 'target']);
  return {
    name: role,
    teardown: async (check) => {
      const { driver, missing, problems } = await lookFor(pipeline, role, shell.places);
      if (driver === null || problems.length > 0) throw new SpecError([...missing, ...problems]);
      const supervised = { role, driver, config, settings: pipeline.supervision, log, random: shell.random };
      return withDriver(
        supervised,
        signal,
      )(async (client) => {
        if (!(await client.listActions()).includes(ACTION.teardown)) return [];
        const request = { writer: pipeline.name, tables: names, check };
        const { items } = await client.action<TeardownAnswer>(ACTION.teardown, request, { signal });
        return items.map((item) => client.mask(item));
      });
    },
  };
}

function storeSide(store: HostStore, { name, tables: all }: Pipeline, tables: readonly TableSpec[] | 'all'): Side {
  const targets = (tables === 'all' ? all : tables).map(({ target }) => target);
  return {
    name: 'store',
    teardown: async (check) => {
      const existing = store.existing();
      if (existing === null) return [];
      const present = check
        ? targets.filter((target) => existing.read(name, target) !== null)
        : existing.remove(name, tables === 'all' ? 'all' : targets);
      return present.map((target) => `position of ${target}`);
    },
  };
}

async function showThenDrop(sides: readonly Side[], { file, yes }: TeardownOptions, shell: Shell): Promise<ExitCode> {
  const shown = await visit(sides, true, shell);
  const items = shown.found.flatMap(({ items }) => items);
  const end = (code: ExitCode) => (shown.failed ? EXIT.failed : code);
  if (items.length === 0) {
    shell.out.write(`${file}: nothing is there that this pipeline made beside the data\n`);
    return end(EXIT.fine);
  }
  shell.out.write('This pipeline made, beside the data:\n');
  print(shown.found, shell);
  if (yes !== true && !shell.interactive) {
    throw new UrutauError('config-invalid', 'nothing was dropped, for nobody is there to be asked', {
      remedy: 'Add --yes to drop all of it.',
    });
  }
  if (yes !== true && !/^y(es)?$/i.test((await shell.ask('Drop all of it? Rows stay. [y/N] ')).trim())) {
    shell.out.write('nothing was dropped\n');
    return end(EXIT.fine);
  }
  const dropped = await visit(
    shown.found.map(({ side }) => side),
    false,
    shell,
  );
  shell.out.write('Dropped:\n');
  print(dropped.found, shell);
  return dropped.failed ? EXIT.failed : end(EXIT.fine);
}

interface Visit {
  readonly found: readonly { side: Side; items: readonly string[] }[];
  readonly failed: boolean;
}

/** A side that cannot be asked keeps nobody from the others: a destination that is gone must not hold a slot. */
async function visit(sides: readonly Side[], check: boolean, shell: Shell): Promise<Visit> {
  const found: { side: Side; items: readonly string[] }[] = [];
  let failed = false;
  for (const side of sides) {
    try {
      const items = await side.teardown(check);
      if (items.length > 0) found.push({ side, items });
    } catch (error) {
      failed = true;
      const known = error instanceof SpecError ? error : asUrutauError(error);
      shell.err.write(
        `the ${side.name} could not be ${check ? 'asked' : 'cleaned'}:\n${describeError(known, { stack: false })}`,
      );
    }
  }
  return { found, failed };
}

function print(found: Visit['found'], { out }: Shell): void {
  for (const { side, items } of found) for (const item of items) out.write(`  ${side.name.padEnd(6)}  ${item}\n`);
}

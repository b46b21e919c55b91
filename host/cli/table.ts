import { UrutauError } from '@urutau/contract';
import type { Command } from 'commander';
import { decodeCheckpoint } from '../checkpoint/checkpoint.ts';
import { memoryStore } from '../checkpoint/memory-store.ts';
import { control, NoHostRunning } from '../control/client.ts';
import { driverTrouble } from '../observe/driver-trouble.ts';
import { createLog } from '../observe/pino-log.ts';
import type { Replayed } from '../pipeline/quarantine/replay.ts';
import { openSink } from '../pipeline/sink/sink.ts';
import type { TableStatus } from '../pipeline/status.ts';
import { closest } from '../spec/did-you-mean.ts';
import type { Pipeline, TableSpec } from '../spec/pipeline.ts';
import { columns } from './columns.ts';
import type { CommandContext } from './command-context.ts';
import { count } from './count.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { hostStore } from './host-store.ts';
import { interruptible } from './interruptible.ts';
import { json, type OutputFormat, outputOption } from './output-option.ts';
import { pipelineDriver } from './pipeline-drivers.ts';
import { type OpenedPipeline, openPipeline, type PipelineOptions, withPipelineOptions } from './pipeline-options.ts';
import type { Shell } from './shell.ts';
import { pauseLines, quarantineLines, tableLine } from './table-line.ts';
import { withDriver } from './with-driver.ts';

interface TableOptions extends PipelineOptions {
  output: OutputFormat;
}

export function addTable(program: Command, { shell, exit }: CommandContext): void {
  const table = program
    .command('table')
    .helpCommand(false)
    .description('look at the tables of a pipeline, or hold, continue or copy one again, or apply what was set aside')
    .addHelpText('after', HELP);
  withPipelineOptions(table.command('status').argument('[table]', NAME), { logLevel: 'warn' })
    .description('show the tables; while no host runs, from the checkpoints in the destination')
    .addOption(outputOption())
    .action(async (name: string | undefined, options: TableOptions) => status(name, options, shell));
  withPipelineOptions(table.command('pause').argument('<table>', NAME), { logLevel: 'warn' })
    .description('commit what is in flight and hold the table; the source keeps its log from there')
    .addOption(outputOption())
    .action(async (name: string, options: TableOptions) =>
      act(name, options, shell, (host, source) => host.pause(source)),
    );
  withPipelineOptions(table.command('resume').argument('<table>', NAME), { logLevel: 'warn' })
    .description('go on with a paused table from its position')
    .addOption(outputOption())
    .action(async (name: string, options: TableOptions) =>
      act(name, options, shell, (host, source) => host.resume(source)),
    );
  withPipelineOptions(table.command('resync').argument('<table>', NAME), { logLevel: 'warn' })
    .description('empty the target in the first commit and copy the table again; the others go on')
    .option('--discard-history', 'agree that the history in an append table is erased')
    .addOption(outputOption())
    .action(async (name: string, options: TableOptions & { discardHistory?: boolean }) =>
      act(name, options, shell, (host, source) =>
        host.resync(source, { discardHistory: options.discardHistory === true }),
      ),
    );
  withPipelineOptions(table.command('replay').argument('<table>', NAME), { logLevel: 'warn' })
    .description('apply the dead letters of a table (onPoison: quarantine) and go on with it')
    .addOption(outputOption())
    .action(async (name: string, options: TableOptions) => exit(await replay(name, options, shell)));
}

const NAME = 'the table, by its name at the source or in the destination';

const HELP = `
All but status speak to the running host through control.sock in its state folder.

Examples:
  urutau-host table status -f shop.yaml
  urutau-host table pause  -f shop.yaml public.orders
  urutau-host table resume -f shop.yaml public.orders
  urutau-host table resync -f shop.yaml public.orders
  urutau-host table replay -f shop.yaml public.orders
`;

async function act(
  name: string,
  options: TableOptions,
  shell: Shell,
  ask: (host: ReturnType<typeof control>, source: string) => Promise<TableStatus>,
): Promise<void> {
  const { pipeline, stateDir } = openPipeline(options, shell);
  const { source } = tableNamed(name, pipeline);
  const table = await ask(control(stateDir), source);
  if (options.output === 'json') return shell.out.write(json(table));
  shell.out.write([tableLine(table), ...quarantineLines(table), ...pauseLines(table), ''].join('\n'));
}

async function replay(name: string, options: TableOptions, shell: Shell): Promise<ExitCode> {
  const { pipeline, stateDir } = openPipeline(options, shell);
  const { source } = tableNamed(name, pipeline);
  const done = await control(stateDir).replay(source);
  if (options.output === 'json') shell.out.write(json({ table: source, ...done }));
  else
    shell.out.write(
      replayLines(source, done)
        .map((line) => `${line}\n`)
        .join(''),
    );
  return done.refused.length === 0 ? EXIT.fine : EXIT.unfinished;
}

function replayLines(table: string, { keys, changes, refused }: Replayed): string[] {
  const freed = `${count(keys, 'key')} ${keys === 1 ? 'is' : 'are'} quarantined no more`;
  return [
    `${table}: ${count(changes, 'dead letter')} applied, ${freed}`,
    ...refused.map(({ key, code, reason }) => `  still refused: ${key}: ${code}: ${reason}`),
  ];
}

/** One row of `table status`, whoever told it. */
interface StatusRow extends Omit<TableStatus, 'totals' | 'state' | 'snapshot'> {
  state: string;
  snapshot: TableStatus['snapshot'] | 'unknown';
  /** Null while no host runs. */
  totals: TableStatus['totals'] | null;
}

async function status(name: string | undefined, options: TableOptions, shell: Shell): Promise<void> {
  const opened = openPipeline(options, shell);
  const wanted = name === undefined ? null : tableNamed(name, opened.pipeline).source;
  const running = await control(opened.stateDir)
    .status()
    .catch((error) => {
      if (error instanceof NoHostRunning) return null;
      throw error;
    });
  const all: StatusRow[] = running?.tables ?? (await storedStatus(opened, options, shell));
  const rows = all.filter(({ source }) => wanted === null || source === wanted);
  const host = running && {
    pid: running.pid,
    startedAt: running.startedAt,
    sessions: running.sessions,
    source: running.source,
    sink: running.sink,
  };
  if (options.output === 'json') return shell.out.write(json({ pipeline: opened.pipeline.name, host, tables: rows }));
  if (host === null) shell.err.write(`no host runs ${opened.pipeline.name}; these are the stored checkpoints\n`);
  for (const role of ['source', 'sink'] as const) {
    const trouble = host && driverTrouble(role, host[role]);
    if (trouble !== null) shell.err.write(`${trouble}\n`);
  }
  shell.out.write(columns(['table', 'target', 'state', 'snapshot', 'rows', 'last change'], rows.map(cells), shell.out));
  for (const row of rows.filter(({ quarantined }) => quarantined.keys > 0)) {
    shell.out.write([...quarantineLines(row), ''].join('\n'));
  }
  for (const row of rows.filter(({ reason }) => reason !== null)) {
    shell.out.write([`${row.source} is paused`, ...pauseLines(row), ''].join('\n'));
  }
}

function cells({ source, target, state, snapshot, totals, lastCommitTs }: StatusRow): string[] {
  const rows = totals && totals.snapshotRows + totals.inserts + totals.updates + totals.deletes;
  return [
    source,
    target,
    state,
    typeof snapshot === 'string' ? snapshot : `${count(snapshot.rangesLeft, 'range')} left`,
    rows === null ? '-' : rows.toLocaleString('en-US'),
    lastCommitTs ?? '-',
  ];
}

/** What the destination, or the host's own store, says of the tables. */
async function storedStatus(
  { pipeline, stateDir }: OpenedPipeline,
  options: TableOptions,
  shell: Shell,
): Promise<StatusRow[]> {
  const driver = await pipelineDriver(pipeline, 'sink', shell.places);
  const { config } = pipeline.sink;
  const log = createLog({ level: options.logLevel, format: 'text' });
  const store = hostStore(pipeline.store, stateDir);
  const supervised = {
    role: 'sink',
    driver,
    config,
    settings: pipeline.supervision,
    log,
    random: shell.random,
  } as const;
  try {
    return await interruptible(shell, (signal) =>
      withDriver(
        supervised,
        signal,
      )(async (client) => {
        const sink = await openSink(client, pipeline.name, () => store.existing() ?? memoryStore());
        const stored = await sink.checkpoints(pipeline.tables.map(({ target }) => target));
        return pipeline.tables.map((table) => storedRow(table, stored.get(table.target) ?? null));
      }),
    );
  } finally {
    store.close();
  }
}

function storedRow({ source, target }: TableSpec, stored: string | null | UrutauError): StatusRow {
  const row = {
    source,
    target,
    reason: null,
    estimatedRows: null,
    totals: null,
    lastCommitAt: null,
    lastCommitMillis: null,
    lastCommitTs: null,
    quarantined: { keys: 0, last: null },
  };
  if (stored === null) return { ...row, state: 'not begun', snapshot: 'not begun', offset: null };
  try {
    if (stored instanceof UrutauError) throw stored;
    const { snapshot, offset, quarantined = [] } = decodeCheckpoint(stored, target);
    const known = { ...row, state: 'stopped', offset, quarantined: { keys: quarantined.length, last: null } };
    if (snapshot === 'done') return { ...known, snapshot };
    const left = 'picture' in snapshot ? ('one picture' as const) : { rangesLeft: snapshot.ranges.length };
    return { ...known, snapshot: left };
  } catch (error) {
    if (!(error instanceof UrutauError)) throw error;
    const { code, message, remedy } = error;
    return {
      ...row,
      state: 'unknown',
      snapshot: 'unknown',
      offset: null,
      reason: { by: 'fault', code, message, remedy },
    };
  }
}

/** By its name at the source or in the destination; without the schema where that is enough to tell it. */
export function tableNamed(name: string, { tables, file }: Pipeline): TableSpec {
  const exact = tables.find(({ source, target }) => source === name || target === name);
  if (exact) return exact;
  const [only, ...others] = tables.filter(({ source }) => source.endsWith(`.${name}`));
  if (only && others.length === 0) return only;
  const names = tables.map(({ source }) => source);
  const meant = closest(name, names);
  throw new UrutauError(
    'config-invalid',
    `${file} has no table ${name}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    {
      remedy: `It has: ${names.join(', ')}.`,
    },
  );
}

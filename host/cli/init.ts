import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { ACTION, type ListTablesAnswer, type TableListing, UrutauError } from '@urutau/contract';
import type { Command } from 'commander';
import { findDriver } from '../driver-packages/find.ts';
import { createLog } from '../observe/pino-log.ts';
import { Secret } from '../spec/secrets.ts';
import type { CommandContext } from './command-context.ts';
import { count } from './count.ts';
import { firstPipelineFile } from './first-pipeline-file.ts';
import { interruptible } from './interruptible.ts';
import { logLevelOption, type PipelineOptions } from './pipeline-options.ts';
import type { Shell } from './shell.ts';
import { withDriver } from './with-driver.ts';

interface InitOptions {
  from?: string;
  to: string;
  output?: string;
  logLevel: PipelineOptions['logLevel'];
}

export function addInit(program: Command, { shell }: CommandContext): void {
  program
    .command('init')
    .description('print a commented pipeline file for the tables of a database')
    .option('--from <uri>', 'the source: postgres://user@host:port/database (default: $URUTAU_SOURCE_URI)')
    .option('--to <kind>', 'the destination: postgres (or its address), or stdout', 'stdout')
    .option('--output <file>', 'write the pipeline file there instead of printing it')
    .addOption(logLevelOption('warn'))
    .addHelpText('after', HELP)
    .action(async (options: InitOptions) => init(options, shell));
}

const HELP = `
Reads the names of the tables, their keys and their sizes, and changes nothing. Addresses do not go into the file: it
takes them from URUTAU_SOURCE_URI and URUTAU_SINK_URI. An address with a password belongs there and not behind --from:
all users of a machine can see the arguments of its programs.

Examples:
  urutau-host init > shop.yaml
  urutau-host init --to postgres --output shop.yaml
`;

const SOURCE_URI = 'URUTAU_SOURCE_URI';

async function init({ from: given, to, output, logLevel }: InitOptions, shell: Shell): Promise<void> {
  const from = given ?? shell.env[SOURCE_URI] ?? '';
  const name = nameFor(
    postgresAddress(from, given === undefined ? SOURCE_URI : '--from', 'postgres://user:password@host:port/database'),
  );
  const sink = to === 'stdout' ? 'stdout' : 'postgres';
  if (to !== 'stdout' && to !== 'postgres') postgresAddress(to, '--to', 'postgres, its address, or stdout');
  if (output !== undefined && existsSync(output)) {
    throw new UrutauError('config-invalid', `${output} exists already`, {
      remedy: 'Name another file with --output, or move this one away.',
    });
  }
  const tables = await listTables(from, name, logLevel, shell);
  const schema = schemaPath(shell.places.hostDirectory, output);
  const text = firstPipelineFile({ name, sink, tables, schema });
  if (output === undefined) shell.out.write(text);
  else write(output, text);

  const keyed = tables.filter(({ primaryKey }) => (primaryKey?.length ?? 0) > 0);
  if (keyed.length === 0) {
    const found = tables.length === 0 ? 'there is no table that this user may read' : 'no table has a primary key';
    throw new UrutauError('precondition-failed', `the file names no table to copy: ${found}`, {
      remedy: 'Grant SELECT on the tables, or do what the comments in the file say.',
    });
  }
  const variables = ['URUTAU_SOURCE_URI', ...(sink === 'postgres' ? ['URUTAU_SINK_URI'] : [])].join(' and ');
  shell.err.write(
    `${count(keyed.length, 'table')} of ${tables.length} can be copied as they are. Set ${variables}, then:\n`,
  );
  shell.err.write(`  urutau-host validate -f ${output ?? 'FILE'} --connect\n`);
}

/** The address itself is never shown: it holds a password. */
function postgresAddress(text: string, option: string, expected: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^postgres(ql)?:$/.test(url.protocol)) return url;
  const came =
    url !== null ? `an address with ${url.protocol}//` : text === '' ? 'nothing' : 'something that is no address';
  throw new UrutauError('config-invalid', `${option}: expected ${expected}; came ${came}`, {
    remedy: 'Correct the address; other kinds of sources and sinks are written into a pipeline file by hand.',
  });
}

/** After the database, as a replication slot may be named. */
function nameFor({ pathname }: URL): string {
  const database = decodeURIComponent(pathname.slice(1))
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, '_');
  return /^[a-z_]/.test(database) ? database.slice(0, 50) : `pipeline_${database}`.slice(0, 50).replace(/_$/, '');
}

async function listTables(
  uri: string,
  name: string,
  level: InitOptions['logLevel'],
  shell: Shell,
): Promise<TableListing[]> {
  const driver = await findDriver({ kind: 'builtin', name: 'postgres' }, 'source', shell.places);
  const log = createLog({ level, format: 'text' });
  const config = { uri: new Secret(uri), slotName: name };
  const { tables } = await interruptible(shell, (signal) =>
    withDriver(
      { role: 'source', driver, config, settings: SUPERVISION, log, random: shell.random },
      signal,
    )((client) => client.action<ListTablesAnswer>(ACTION.listTables, undefined, { signal })),
  );
  return tables.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const SUPERVISION = {
  heartbeatMs: 2_000,
  misses: 7,
  readyMs: 30_000,
  stopMs: 15_000,
  backoff: { firstMs: 1_000, maxMs: 60_000 },
  // biome-ignore lint/suspicious/noThenProperty: the field of the pipeline file has this name.
  breaker: { failures: 1, windowMs: 300_000, holdMs: 60_000, then: 'exit' },
} as const;

/** Where an editor finds the JSON Schema, seen from the new file. */
function schemaPath(hostDirectory: string, output: string | undefined): string {
  const folder = output === undefined ? '.' : dirname(resolve(output));
  for (let at = hostDirectory; ; at = dirname(at)) {
    for (const place of ['contract', 'node_modules/@urutau/contract']) {
      const file = join(at, place, 'schemas/pipeline.schema.json');
      if (existsSync(file)) return relative(folder, file);
    }
    if (at === dirname(at)) return 'pipeline.schema.json';
  }
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' });
  } catch (cause) {
    throw new UrutauError('config-invalid', `${file} cannot be written: ${(cause as Error).message}`, {
      cause,
      remedy: 'Name a file in a folder that this user may write to.',
    });
  }
}

import { UrutauError } from '@urutau/contract';
import { Argument, type Command } from 'commander';
import { control } from '../control/client.ts';
import { type DriverRole, listDrivers } from '../driver-packages/find.ts';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import { closest } from '../spec/did-you-mean.ts';
import { columns } from './columns.ts';
import type { CommandContext } from './command-context.ts';
import { type ConfigField, configFields } from './config-fields.ts';
import { json, type OutputFormat, outputOption } from './output-option.ts';
import { openPipeline, type PipelineOptions, withPipelineOptions } from './pipeline-options.ts';
import type { Shell } from './shell.ts';

export function addDriver(program: Command, { shell }: CommandContext): void {
  const driver = program
    .command('driver')
    .helpCommand(false)
    .description('the drivers that are there, built in or installed, what each one is told, and closing a breaker')
    .addHelpText('after', HELP);
  driver
    .command('list')
    .description('list the drivers')
    .addOption(outputOption())
    .action(async ({ output }: { output: OutputFormat }) => list(output, shell));
  driver
    .command('info')
    .argument('[name]', 'the name of a driver; all when it is left out')
    .description('show the config fields and capabilities of a driver')
    .addOption(outputOption())
    .action(async (name: string | undefined, { output }: { output: OutputFormat }) => info(name, output, shell));
  const role = new Argument('<role>', 'which driver of the pipeline').choices(['source', 'sink']);
  withPipelineOptions(driver.command('reset').addArgument(role), { logLevel: 'warn' })
    .description('close the breaker of a driver that was mended, and have it started now')
    .addOption(outputOption())
    .action(async (role: DriverRole, options: ResetOptions) => reset(role, options, shell));
}

interface ResetOptions extends PipelineOptions {
  output: OutputFormat;
}

const HELP = `
reset speaks to the running host through control.sock in its state folder.

Examples:
  urutau-host driver list
  urutau-host driver info postgres
  urutau-host driver reset source -f shop.yaml
`;

async function list(output: OutputFormat, { places, out }: Shell): Promise<void> {
  const drivers = (await listDrivers(places)).map(facts);
  if (output === 'json') return out.write(json(drivers));
  const rows = drivers.map(({ name, version, roles, protocolVersions }) => [
    name,
    version,
    roles.join(', '),
    protocolVersions.join(', '),
  ]);
  out.write(columns(['driver', 'version', 'roles', 'protocol'], rows, out));
}

async function info(name: string | undefined, output: OutputFormat, { places, out }: Shell): Promise<void> {
  const drivers = await listDrivers(places);
  const wanted = drivers.filter(({ manifest }) => name === undefined || manifest.name === name);
  if (wanted.length === 0) throw unknownDriver(name!, drivers);
  const described = wanted.map((driver) => ({
    ...facts(driver),
    capabilities: driver.manifest.capabilities,
    config: configFields(driver.configSchema),
  }));
  if (output === 'json') return out.write(json(described));
  out.write(
    described
      .map(({ name, version, roles, protocolVersions, directory, capabilities, config }) =>
        [
          `${name} ${version} (${roles.join(', ')})`,
          `  protocol      ${protocolVersions.join(', ')}`,
          `  folder        ${directory}`,
          `  capabilities  ${Object.entries(capabilities)
            .map(([capability, value]) => `${capability}: ${JSON.stringify(value)}`)
            .join(', ')}`,
          '  config',
          ...config.map((field) => `    ${fieldLine(field)}`),
          ...(config.length === 0 ? ['    (the driver has no config.schema.json)'] : []),
          '',
        ].join('\n'),
      )
      .join('\n'),
  );
}

async function reset(role: DriverRole, options: ResetOptions, shell: Shell): Promise<void> {
  const { stateDir } = openPipeline(options, shell);
  const status = await control(stateDir).resetDriver(role);
  if (options.output === 'json') return shell.out.write(json(status));
  shell.out.write(`the ${role} driver is ${status.state}, and its breaker is ${status.breaker}\n`);
}

function facts({ manifest: { name, version, roles, protocolVersions }, directory }: DriverPackage) {
  return { name, version, roles, protocolVersions, directory };
}

function fieldLine({ path, type, required, secret, description, default: fallback }: ConfigField): string {
  const marks = [
    type,
    ...(required ? ['required'] : []),
    ...(secret ? ['secret'] : []),
    ...(fallback === undefined ? [] : [`default ${JSON.stringify(fallback)}`]),
  ];
  return `${path} (${marks.join(', ')})${description === undefined ? '' : `: ${description}`}`;
}

function unknownDriver(name: string, drivers: readonly DriverPackage[]): UrutauError {
  const names = [...new Set(drivers.map(({ manifest }) => manifest.name))];
  const meant = closest(name, names);
  const suggestion = meant === undefined ? '' : `; did you mean ${meant}?`;
  return new UrutauError('config-invalid', `there is no driver named ${name}${suggestion}`, {
    remedy: `There are: ${names.sort().join(', ')}.`,
  });
}

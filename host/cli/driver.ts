import { UrutauError } from '@urutau/contract';
import type { Command } from 'commander';
import { listDrivers } from '../driver-packages/find.ts';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import { closest } from '../spec/did-you-mean.ts';
import { columns } from './columns.ts';
import type { CommandContext } from './command-context.ts';
import { type ConfigField, configFields } from './config-fields.ts';
import { json, type OutputFormat, outputOption } from './output-option.ts';
import type { Shell } from './shell.ts';

export function addDriver(program: Command, { shell }: CommandContext): void {
  const driver = program
    .command('driver')
    .helpCommand(false)
    .description('the drivers that are there, built in or installed, and what each one is told')
    .addHelpText('after', '\nExamples:\n  urutau-host driver list\n  urutau-host driver info postgres\n');
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
}

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

import { PROTOCOL_VERSION } from '@urutau/contract';
import type { Command } from 'commander';
import type { CommandContext } from './command-context.ts';
import { json, type OutputFormat, outputOption } from './output-option.ts';
import { HOST_VERSION } from './version-number.ts';

export function addVersion(program: Command, { shell }: CommandContext): void {
  program
    .command('version')
    .description('the versions of the host, of the protocol that it speaks, and of Node')
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  urutau-host version --output json\n')
    .action(({ output }: { output: OutputFormat }) => {
      const versions = { host: HOST_VERSION, protocol: PROTOCOL_VERSION, node: shell.nodeVersion };
      if (output === 'json') shell.out.write(json(versions));
      else shell.out.write(`urutau-host ${versions.host}\nprotocol ${versions.protocol}\nnode ${versions.node}\n`);
    });
}

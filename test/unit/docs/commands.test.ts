import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommandLine } from '../../../host/cli/program.ts';
import { runSummary } from '../../../host/cli/run-summary.ts';
import { recordingShell } from '../host/cli/recording-shell.ts';
import { tableStatus } from '../host/cli/table-status.ts';
import { blocksOf, documents, root } from './documents.ts';

const lines = blocksOf('sh').flatMap(({ path, block }) =>
  block.split('\n').map((line) => ({ path, line: line.replace(/\s+#.*$/, '').trim() })),
);
const hostCommands = lines.flatMap(({ path, line }) =>
  line.split(/&&|\|/).flatMap((part) => {
    const [, command] = /^\s*npx urutau-host (.*)$/.exec(part) ?? [];
    return command === undefined ? [] : [{ path, command: command.trim() }];
  }),
);

test.each(hostCommands)(
  '$path: urutau-host $command is a command line that the program understands',
  async ({ command }) => {
    const { err } = await commandLine(argumentsOf(command));

    expect(err).not.toContain('(--help tells how it is used)');
  },
);

test('the documents show every command', () => {
  const shown = new Set(hostCommands.map(({ command }) => /^[a-z]+/.exec(command)![0]));

  expect([...shown].sort()).toEqual(['driver', 'init', 'run', 'table', 'teardown', 'validate', 'verify', 'version']);
});

test('an unknown option would be noticed', async () => {
  expect((await commandLine(['run', '-f', '/nowhere', '--fast'])).err).toContain('(--help tells how it is used)');
});

test.each(['init', 'validate', 'run', 'table', 'verify', 'teardown', 'driver', 'version'])(
  'the page of commands names every option of %s and no other',
  async (command) => {
    const page = readFileSync(join(root, 'docs/commands.md'), 'utf8');
    const section = (title: string) => page.split(/^## /m).find((part) => part.startsWith(`${title}\n`))!;
    const common = optionsIn(page.split('**Options of every command')[1]!.split(/^## /m)[0]!);
    const forms = subcommands(command).map((name) => [command, ...name]);
    const helps = await Promise.all(forms.map(async (form) => (await commandLine([...form, '--help'])).out));
    const known = new Set(helps.flatMap((help) => optionsIn(help.replace(/\nExamples?:[\s\S]*/, ''))));
    for (const option of ['--help', '--file']) known.delete(option);

    // The program itself has --version.
    const named = new Set(optionsIn(section(command)).filter((option) => option !== '--version'));

    expect([...named].filter((option) => !known.has(option)).sort()).toEqual([]);
    expect([...known].filter((option) => !named.has(option) && !common.includes(option)).sort()).toEqual([]);
  },
);

test('the summary that the page of commands shows has the fields of a real one', () => {
  const none = { cpuSeconds: 0, peakMemoryBytes: 0 };
  const real = runSummary(
    { tables: [tableStatus({ source: 'public.orders' })] },
    { seconds: 1, usage: { host: none, source: none, sink: none } },
  );

  const [shown] = blocksOf('json').filter(({ path }) => path === 'docs/commands.md');

  expect(fieldsOf(JSON.parse(shown!.block))).toEqual(fieldsOf(real));
});

test('every npm script that a document names is there, with its options', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const options: Record<string, string> = {
    bench: readFileSync(join(root, 'test/bench/options.mjs'), 'utf8'),
    oracle: readFileSync(join(root, 'test/oracle/options.ts'), 'utf8'),
    quickstart: '--keep',
    verify: '--long',
  };
  const wrong = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/npm run ([\w:-]+)(?: -- ([^`#\n]*))?/g)].flatMap(([, script, given = '']) => {
      const unknown = optionsIn(given).filter(
        (option) =>
          option !== '--help' && !new RegExp(`${option.replace(/^--/, '(--)?')}\\b`).test(options[script!] ?? ''),
      );
      return script! in scripts && unknown.length === 0 ? [] : [`${path}: npm run ${script} ${unknown.join(' ')}`];
    }),
  );

  expect(wrong).toEqual([]);
});

test('every program that a document starts with node is there', () => {
  const missing = lines.flatMap(({ path, line }) => {
    const [, program] = /^node ([\w./-]+)/.exec(line) ?? [];
    return program === undefined || existsSync(join(root, program)) ? [] : [`${path}: ${program}`];
  });

  expect(missing).toEqual([]);
});

function fieldsOf({ tables, processes, ...rest }: ReturnType<typeof runSummary>): unknown {
  return [Object.keys(rest), Object.keys(Object.values(tables)[0]!), Object.keys(processes[0]!)];
}

function subcommands(command: string): string[][] {
  switch (command) {
    case 'table':
      return [['status'], ['pause'], ['resume'], ['resync']];
    case 'driver':
      return [['list'], ['info'], ['reset']];
    default:
      return [[]];
  }
}

async function commandLine(args: string[]): Promise<{ out: string; err: string }> {
  const shell = recordingShell();
  await runCommandLine(args, shell);
  return shell.written;
}

/** As a shell would give them, but no file is there and no variable set: the command is understood and then fails. */
function argumentsOf(command: string): string[] {
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
  const redirect = words.indexOf('>');
  return (redirect < 0 ? words : words.slice(0, redirect)).map((word, index, all) =>
    all[index - 1] === '-f' ? join('/nowhere', word) : word.replace(/^\$\w+$/, 'unset'),
  );
}

function optionsIn(text: string): string[] {
  return text.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [];
}

import { Command, CommanderError } from 'commander';
import { armFaultPoints } from '../fault-point.ts';
import { describeError, exitCodeOf } from './describe-error.ts';
import { addDriver } from './driver.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { addInit } from './init.ts';
import { addRun } from './run.ts';
import type { Shell } from './shell.ts';
import { addTable } from './table.ts';
import { addTeardown } from './teardown.ts';
import { addValidate } from './validate.ts';
import { addVerify } from './verify.ts';
import { addVersion } from './version.ts';
import { HOST_VERSION } from './version-number.ts';

/** Carries one command line out, without the program's own name. Resolves with the exit code and never rejects. */
export async function runCommandLine(args: readonly string[], shell: Shell): Promise<ExitCode> {
  let code: ExitCode = EXIT.fine;
  const program = programOf(shell, (chosen) => {
    code = chosen;
  });
  try {
    armFaultPoints(shell.env);
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    // It has said what is wrong.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.wrong;
    shell.err.write(describeError(error, { stack: asksForStack(args) }));
    return exitCodeOf(error);
  }
}

function programOf(shell: Shell, exit: (code: ExitCode) => void): Command {
  const program = new Command('urutau-host')
    .description('copies tables from a database to somewhere else, and keeps the copy true while the source changes')
    .version(HOST_VERSION, '--version', 'print the version')
    .helpOption('--help', 'say how a command is used')
    .helpCommand(false)
    .showSuggestionAfterError()
    .showHelpAfterError('(--help tells how it is used)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.out.write(text),
      writeErr: (text) => shell.err.write(text),
      getOutHelpWidth: () => (shell.out.isTerminal ? shell.out.columns : HELP_COLUMNS),
      getErrHelpWidth: () => (shell.err.isTerminal ? shell.err.columns : HELP_COLUMNS),
    })
    .addHelpText('after', HELP);
  const context = { shell, exit };
  addInit(program, context);
  addValidate(program, context);
  addRun(program, context);
  addTable(program, context);
  addVerify(program, context);
  addTeardown(program, context);
  addDriver(program, context);
  addVersion(program, context);
  return program;
}

const HELP_COLUMNS = 100;

const HELP = `
To begin:
  export URUTAU_SOURCE_URI=postgres://me:secret@localhost/shop
  urutau-host init --output shop.yaml
  urutau-host validate -f shop.yaml --connect
  urutau-host run -f shop.yaml

Exit codes:
  0    fine
  1    failed
  2    wrong configuration or environment
  3    finished, with a table paused, rows refused still, or a table that could not be compared
  130  ended at once by a second signal

urutau-host COMMAND --help tells the rest.
`;

function asksForStack(args: readonly string[]): boolean {
  return args.some(
    (arg, index) => arg === '--log-level=debug' || (arg === 'debug' && args[index - 1] === '--log-level'),
  );
}

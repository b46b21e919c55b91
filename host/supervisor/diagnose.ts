import { constants } from 'node:os';
import { asUrutauError, ERRORS, UrutauError } from '@urutau/contract';
import type { CommandProblem } from './command.ts';
import { parseLine } from './driver-log.ts';
import { excerpt } from './readiness.ts';
import type { Exit } from './spawn.ts';

/** How a start or a driver failed. */
export type Fault =
  | { readonly kind: 'unusable'; readonly problem: CommandProblem }
  | { readonly kind: 'refused'; readonly error: Error }
  | { readonly kind: 'exited'; readonly exit: Exit; readonly wasReady: boolean }
  | { readonly kind: 'not-ready'; readonly readyMs: number }
  | { readonly kind: 'bad-readiness'; readonly problem: string }
  | { readonly kind: 'handshake'; readonly cause: unknown }
  | { readonly kind: 'dead'; readonly misses: number; readonly cause: unknown }
  | { readonly kind: 'unauthenticated'; readonly cause: unknown };

export interface Diagnosis {
  readonly error: UrutauError;
  /** Another start cannot help: the driver, its configuration or this machine must change first. */
  readonly final: boolean;
}

export interface DiagnoseOptions {
  /** What the driver is called in the message. */
  readonly driver: string;
  /** The end of its stderr, without secrets. */
  readonly stderr: string;
  /** A program that ran before may be missing for a moment, while it is replaced; one that never ran is a mistake. */
  readonly ranBefore: boolean;
}

/** Turns a fault into one sentence and a remedy. The whole of the kept stderr is the error's cause. */
export function diagnose(fault: Fault, options: DiagnoseOptions): Diagnosis {
  const { driver, stderr, ranBefore } = options;
  const cause = stderr === '' ? undefined : new Error(`the end of its stderr:\n${stderr}`);
  switch (fault.kind) {
    case 'unusable': {
      const { problem, remedy } = unusable(fault.problem);
      return {
        error: new UrutauError('config-invalid', `${driver} cannot be started: ${problem}`, { remedy }),
        final: !ranBefore,
      };
    }
    case 'refused':
      return { error: refused(driver, fault.error), final: false };
    case 'exited':
      return exited(fault, driver, stderr, cause);
    case 'not-ready': {
      const problem = `${driver} was not ready within ${fault.readyMs / 1_000} s: a readiness line was expected on its stdout, and no line came`;
      const remedy = 'Look at what the driver was waiting for; raise `supervision.ready` if it needs longer to start.';
      return { error: new UrutauError('protocol-violation', problem + words(stderr), { cause, remedy }), final: false };
    }
    case 'bad-readiness': {
      const problem = `${driver} did not become ready: ${fault.problem}`;
      const remedy =
        'The first line on stdout must be the readiness line of a protocol version that this host speaks; whatever a driver says before it belongs on stderr.';
      return { error: new UrutauError('protocol-violation', problem + words(stderr), { cause, remedy }), final: false };
    }
    case 'handshake': {
      const { code, message, remedy } = asUrutauError(fault.cause, 'protocol-violation');
      const problem = `${driver} said that it was ready, but the handshake failed: ${message}`;
      return { error: new UrutauError(code, problem + words(stderr), { cause: fault.cause, remedy }), final: false };
    }
    case 'dead': {
      const problem = `${driver} missed ${fault.misses} heartbeats in a row and is taken for dead (${messageOf(fault.cause)})`;
      const remedy =
        ownRemedy(fault.cause) ??
        'It hangs: a heartbeat must be answered within a second, also under full load. Its last lines of log say where it was.';
      return {
        error: new UrutauError('internal', problem + words(stderr), { cause: fault.cause, remedy }),
        final: false,
      };
    }
    case 'unauthenticated': {
      const problem = `${driver} refused the token that it was started with (${messageOf(fault.cause)})`;
      return { error: new UrutauError('protocol-violation', problem, { cause: fault.cause }), final: false };
    }
  }
}

/** What an error says beyond its code. */
function ownRemedy(error: unknown): string | null {
  return error instanceof UrutauError && error.remedy !== ERRORS[error.code].remedy ? error.remedy : null;
}

function unusable(problem: CommandProblem): { problem: string; remedy: string } {
  switch (problem.kind) {
    case 'missing':
      return {
        problem: `its command ${excerpt(problem.command)} was not found (looked in ${problem.lookedIn})`,
        remedy:
          'Install the program, or correct `command` in its plugin.yaml; a file in the driver\'s folder is written as "./name".',
      };
    case 'not-executable':
      return { problem: `${problem.file} may not be executed`, remedy: `Make it executable: chmod +x ${problem.file}` };
    case 'missing-interpreter': {
      const isWindowsFile = problem.interpreter.endsWith('\r');
      return {
        problem: `the first line of ${problem.file} names the interpreter ${excerpt(problem.interpreter)}, which was not found`,
        remedy: isWindowsFile
          ? 'Save the file with Unix line ends.'
          : 'Install the interpreter, or correct the first line.',
      };
    }
    case 'wrong-architecture':
      return {
        problem: `${problem.file} was built for ${problem.built}, and this machine is ${problem.here}`,
        remedy: `Install the driver's build for ${problem.here}.`,
      };
  }
}

function refused(driver: string, error: Error): UrutauError {
  if (error instanceof UrutauError) return error;
  const remedy =
    REFUSALS[(error as NodeJS.ErrnoException).code ?? ''] ??
    "Read what the system said, and check the driver's plugin.yaml.";
  return new UrutauError('internal', `${driver} could not be started: ${messageOf(error)}`, { cause: error, remedy });
}

const REFUSALS: Readonly<Record<string, string>> = {
  EAGAIN: "Too many processes: raise the limit (ulimit -u, or the container's pids limit).",
  EMFILE: 'Too many open files: raise the limit (ulimit -n).',
  ENOMEM: "Free memory, or raise the limit of the host's container.",
  ENOSPC: 'Free space where the runtime folder lies, or set TMPDIR.',
  E2BIG: "The environment is too large; name fewer variables in the manifest's `env`.",
  ETXTBSY: 'The program is being written just now; start it when its installation is done.',
};

function exited(
  { exit: { code, signal }, wasReady }: { exit: Exit; wasReady: boolean },
  driver: string,
  stderr: string,
  cause: Error | undefined,
): Diagnosis {
  const when = wasReady ? '' : ' before it was ready';
  if (code === 2) {
    const remedy = 'Correct what the driver says about its configuration or environment, then start again.';
    const problem = `${driver} refuses its configuration or environment (exit code 2)${words(stderr)}`;
    return { error: new UrutauError('config-invalid', problem, { cause, remedy }), final: true };
  }
  const inside = signal ?? signalInside(code);
  const how =
    signal !== null
      ? `was ended by ${signal}`
      : `exited with code ${code}${inside === null ? '' : ` (as a shell does whose command was ended by ${inside})`}`;
  const problem = `${driver} ${how}${when}, which nobody asked for${words(stderr)}`;
  return { error: new UrutauError('internal', problem, { cause, remedy: remedyOf(code, inside) }), final: false };
}

/** Behind `sh -c` and `npx` the death of the driver itself arrives as 128 and the number of the signal. */
function signalInside(code: number | null): NodeJS.Signals | null {
  const named = Object.entries(constants.signals).find(([, number]) => 128 + number === code);
  return named === undefined ? null : (named[0] as NodeJS.Signals);
}

function remedyOf(code: number | null, signal: NodeJS.Signals | null): string {
  switch (signal) {
    case null:
      break;
    case 'SIGKILL':
      return "If nobody killed it, the system was out of memory: see its log (dmesg, or the container's events) and give it more.";
    case 'SIGABRT':
      return 'It gave itself up, as a runtime does that is out of memory or finds itself broken: the lines above say which. Give it more memory, or report it to its author.';
    case 'SIGILL':
      return 'It was built for another kind of processor: install the build for this machine.';
    case 'SIGTERM':
    case 'SIGINT':
    case 'SIGHUP':
      return 'Someone else sent it this signal; the host starts it again by itself.';
    default:
      return 'The driver crashed; report it to its author with the lines above.';
  }
  switch (code) {
    case 0:
      return 'A driver runs until it is told to shut down: its command must not return, nor go on in the background.';
    case 126:
      return 'Its command could not be executed: check the permissions of the program and that it was built for this machine.';
    case 127:
      return 'A program that its command needs was not found: install it, or correct `command` in its plugin.yaml.';
    default:
      return "Read the driver's last lines above; the host starts it again by itself.";
  }
}

/** `    at file:1:2` and ` 3: 0xee85e7 function [program]`: a deep stack would push out what went wrong. */
const STACK_FRAME = /^\s+at |^\s*\d+: 0x[0-9a-f]+ /;
const WORDS_LINES_MAX = 8;
const WORDS_CHARS_MAX = 1_500;

/** The driver's last lines, for the end of a sentence. */
function words(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => parseLine(line.trimEnd()).msg)
    .filter((line) => line.trim() !== '');
  if (lines.length === 0) return '; it said nothing on stderr';
  const said = lines.filter((line) => !STACK_FRAME.test(line));
  return `; it said: ${(said.length === 0 ? lines : said).slice(-WORDS_LINES_MAX).join(' | ').slice(-WORDS_CHARS_MAX)}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

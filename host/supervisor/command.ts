import { constants } from 'node:fs';
import { access, open, readdir, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

export type CommandProblem =
  | { readonly kind: 'missing'; readonly command: string; readonly lookedIn: string }
  | { readonly kind: 'not-executable'; readonly file: string }
  | { readonly kind: 'missing-interpreter'; readonly file: string; readonly interpreter: string }
  | { readonly kind: 'wrong-architecture'; readonly file: string; readonly built: string; readonly here: string };

export type ResolvedCommand =
  | { readonly kind: 'resolved'; readonly file: string; readonly args: readonly string[] }
  | { readonly kind: 'unusable'; readonly problem: CommandProblem };

export interface Machine {
  /** The PATH that the driver gets. */
  readonly path: string;
  readonly arch: string;
  /** The Node that runs the host: a driver's `node` means this one, so that no second installation is needed. */
  readonly node: string;
}

/**
 * Finds the program of a manifest's `command` and checks that this machine can run it. Done before the spawn, because
 * behind a wrapper, or through the shell that takes what the kernel refuses, each of these would be a bare exit code.
 */
export async function resolveCommand(
  command: readonly string[],
  directory: string,
  machine: Machine,
): Promise<ResolvedCommand> {
  const [program = '', ...args] = command;
  if (program === 'node') return { kind: 'resolved', file: machine.node, args };
  const file = await locate(program, directory, machine.path);
  if (file === null) {
    const lookedIn = program.includes('/') ? resolve(directory, program) : 'PATH';
    return { kind: 'unusable', problem: { kind: 'missing', command: program, lookedIn } };
  }
  const problem = await obstacle(file, machine);
  return problem === null ? { kind: 'resolved', file, args } : { kind: 'unusable', problem };
}

async function locate(program: string, directory: string, path: string): Promise<string | null> {
  const candidates = program.includes('/')
    ? [resolve(directory, program)]
    : path
        .split(delimiter)
        .filter(isAbsolute)
        .map((folder) => join(folder, program));
  let found: string | null = null;
  for (const candidate of candidates) {
    if (!(await isFile(candidate))) continue;
    if (await isExecutable(candidate)) return candidate;
    found ??= candidate; // Named only when nothing better comes: the reason is then its permissions.
  }
  return found;
}

async function obstacle(file: string, machine: Machine): Promise<CommandProblem | null> {
  if (!(await isExecutable(file))) return { kind: 'not-executable', file };
  const head = await readHead(file);
  if (head === null) return null; // Executable but not readable.
  if (head.toString('latin1', 0, 2) === '#!') return missingInterpreter(file, head, machine);
  const built = elfArchitecture(head);
  if (built === null || runsOn(built, machine.arch) || (await emulated())) return null;
  return { kind: 'wrong-architecture', file, built, here: machine.arch };
}

async function missingInterpreter(file: string, head: Buffer, machine: Machine): Promise<CommandProblem | null> {
  const line = head.toString('utf8', 2).split('\n', 1)[0] ?? '';
  // The carriage return of a file saved on Windows is part of the name for the kernel, and so it is here.
  const [interpreter = '', ...words] = line.trimStart().split(/[ \t]+/);
  if (!(await isFile(interpreter))) return { kind: 'missing-interpreter', file, interpreter };
  if (!interpreter.endsWith('/env')) return null;
  const named = words.find((word) => !word.startsWith('-') && !word.includes('='));
  if (named === undefined || (await locate(named, '/', machine.path)) !== null) return null;
  return { kind: 'missing-interpreter', file, interpreter: named };
}

/** Numbers of the ELF header's e_machine, under the names that Node has for them. */
const ELF_MACHINES: Readonly<Record<number, string>> = {
  3: 'ia32',
  8: 'mips',
  21: 'ppc64',
  22: 's390x',
  40: 'arm',
  62: 'x64',
  183: 'arm64',
  243: 'riscv64',
  258: 'loong64',
};

function elfArchitecture(head: Buffer): string | null {
  if (head.length < 20 || head.toString('latin1', 0, 4) !== '\x7fELF') return null;
  const isBigEndian = head[5] === 2;
  return ELF_MACHINES[isBigEndian ? head.readUInt16BE(18) : head.readUInt16LE(18)] ?? null;
}

function runsOn(built: string, here: string): boolean {
  return built === here || (built === 'ia32' && here === 'x64') || (built === 'arm' && here === 'arm64');
}

/** Linux can hand foreign programs to an emulator. */
async function emulated(): Promise<boolean> {
  try {
    return (await readdir('/proc/sys/fs/binfmt_misc')).some((name) => name.startsWith('qemu-'));
  } catch {
    return false;
  }
}

async function readHead(file: string): Promise<Buffer | null> {
  const handle = await open(file, 'r').catch(() => null);
  if (handle === null) return null;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

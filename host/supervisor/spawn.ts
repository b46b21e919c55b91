import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { asUrutauError } from '@urutau/contract';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import { type CommandProblem, resolveCommand } from './command.ts';
import { driverEnvironment } from './environment.ts';
import { guardArguments, guardIsTold } from './guard.ts';
import { ProcessGroup } from './process-group.ts';
import type { Transport } from './readiness.ts';
import { createRuntimeFolder, type RuntimeFolder, sweepRuntimeFolders } from './runtime-folder.ts';

export interface SpawnOptions {
  readonly role: 'source' | 'sink';
  readonly driver: DriverPackage;
  /** Plain, with its secrets revealed; written to a file that only this user can read. */
  readonly config: unknown;
  readonly transport: Transport;
  /** The first process of this driver in this run. */
  readonly isFirst: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface DriverProcess {
  readonly pid: number;
  readonly token: string;
  readonly folder: RuntimeFolder;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly group: ProcessGroup;
  /** Resolves when the first process of the group has ended. */
  readonly exited: Promise<Exit>;
  /** Once the group is gone: ends what left it, removes the folder, and lets the guard go. */
  clearAway(): Promise<void>;
}

export type Spawned =
  | { readonly kind: 'spawned'; readonly process: DriverProcess }
  | { readonly kind: 'unusable'; readonly problem: CommandProblem }
  | { readonly kind: 'refused'; readonly error: Error };

/** Starts a driver in its own process group, tied to this host's life. The caller ends the group and removes the folder. */
export async function spawnDriver({ role, driver, config, transport, isFirst }: SpawnOptions): Promise<Spawned> {
  const { directory, manifest } = driver;
  const resolved = await resolveCommand(manifest.command, directory, {
    path: process.env['PATH'] ?? '',
    arch: process.arch,
    node: process.execPath,
  });
  if (resolved.kind === 'unusable') return resolved;
  const wrapper = await parentDeathWrapper();
  let folder: RuntimeFolder;
  try {
    folder = await createRuntimeFolder(config, process.env);
  } catch (error) {
    return { kind: 'refused', error: asUrutauError(error) };
  }

  const guard = startGuard(folder);
  const token = randomBytes(32).toString('base64');
  const hostStdout = manifest.stdout === 'host';
  const [file = '', ...args] = [...wrapper, resolved.file, ...resolved.args];
  const start = () =>
    spawn(file, args, {
      cwd: directory,
      env: driverEnvironment({
        role,
        token,
        configFile: folder.configFile,
        directory,
        listen: transport === 'unix' ? { socket: folder.socketPath } : { bind: '127.0.0.1:0' },
        hostStdout,
        passed: manifest.env,
        host: process.env,
        playsFault: isFirst,
      }),
      detached: true, // A group of its own, so that all that it starts can be ended with it.
      // The pipe on stdin is the lifeline: nothing is ever written, and its end tells the driver that the host is gone.
      stdio: hostStdout ? ['pipe', 'pipe', 'pipe', 1] : ['pipe', 'pipe', 'pipe'],
    });
  let child: ReturnType<typeof start>;
  try {
    child = start();
    await once(child, 'spawn');
  } catch (error) {
    await folder.remove();
    guard.release();
    return { kind: 'refused', error: error as Error };
  }
  const pid = child.pid!;
  guard.watch(pid);
  child.stdin?.on('error', () => {}); // The driver may close its end.
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const group = new ProcessGroup(pid, exited);
  endWithHost(group, folder);
  return {
    kind: 'spawned',
    process: {
      pid,
      token,
      folder,
      stdout: child.stdout as Readable,
      stderr: child.stderr as Readable,
      group,
      exited,
      clearAway: async () => {
        await folder.endUsers();
        await folder.remove();
        guard.release();
      },
    },
  };
}

/** Removes what dead hosts left behind on this machine. */
export function sweepDeadHosts(): Promise<void> {
  return sweepRuntimeFolders(process.env);
}

let wrapperFound: Promise<readonly string[]> | undefined;

/** Looked for once: what makes the kernel end the driver with us, where the platform has it. Not every `setpriv` knows the option. */
function parentDeathWrapper(): Promise<readonly string[]> {
  wrapperFound ??= (async () => {
    if (process.platform !== 'linux') return [];
    const wrapper = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
    const probe = promisify(execFile)(wrapper[0], [...wrapper.slice(1), process.execPath, '--version']);
    return probe.then(
      () => wrapper,
      () => [],
    );
  })();
  return wrapperFound;
}

interface Guard {
  watch(pgid: number): void;
  release(): void;
}

/**
 * A process of its own that ends the driver's when this one is gone: begun before the driver, so that there is no moment
 * without it. Where there is no shell the driver is without a guard.
 */
function startGuard({ path }: RuntimeFolder): Guard {
  const guard = spawn('/bin/sh', guardArguments(path), {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true, // A signal to the host's own group is not for it.
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => {}); // There is none, or it is past being ended.
  // Without a file descriptor left there is not even a pipe.
  const told = guard.stdin as typeof guard.stdin | undefined;
  told?.on('error', () => {}); // Somebody ended it.
  return {
    watch: (pgid) => void told?.write(guardIsTold(pgid)),
    release: () => void guard.kill('SIGKILL'),
  };
}

const living = new Map<ProcessGroup, RuntimeFolder>();

/** An orderly host has ended its drivers long before it exits; one that exits at once takes them with it. */
function endWithHost(group: ProcessGroup, folder: RuntimeFolder): void {
  if (living.size === 0) process.on('exit', endAll);
  living.set(group, folder);
  void group.gone.then(() => {
    living.delete(group);
    if (living.size === 0) process.off('exit', endAll);
  });
}

function endAll(): void {
  for (const [group, folder] of living) {
    group.signal('SIGKILL');
    folder.removeNow();
  }
}

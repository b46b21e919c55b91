import { readFileSync, readlinkSync, rmSync } from 'node:fs';
import { lstat, mkdtemp, readdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UrutauError } from '@urutau/contract';

/** What one start of a driver has on disk: a closed folder with its socket and, until it is ready, its config. */
export interface RuntimeFolder {
  readonly path: string;
  readonly socketPath: string;
  readonly configFile: string;
  /** The driver has read its config; nobody else needs it. */
  forgetConfig(): Promise<void>;
  /** Ends, on Linux, what still runs from here and resolves when it is gone, or after a second: the system holds it then. */
  endUsers(): Promise<void>;
  /** Never rejects: what a driver has put there so that it cannot be removed is no fault of its successor. */
  remove(): Promise<void>;
  /** For the last moment of the host, when nothing can be awaited any more. */
  removeNow(): void;
}

/** Makes the folder (0700) and the config file (0600). A new path for every start: a killed driver leaves its socket behind. */
export async function createRuntimeFolder(
  config: unknown,
  env: Readonly<Record<string, string | undefined>>,
): Promise<RuntimeFolder> {
  const path = await makeFolder(env);
  const configFile = join(path, 'config.json');
  try {
    await writeFile(configFile, JSON.stringify(config ?? {}), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    await rm(path, { recursive: true, force: true });
    throw error;
  }
  return {
    path,
    socketPath: socketIn(path),
    configFile,
    forgetConfig: () => unlink(configFile).catch(() => {}),
    endUsers: () => endUsersOf(path),
    remove: () => rm(path, { recursive: true, force: true }).catch(() => {}),
    removeNow: () => {
      try {
        rmSync(path, { recursive: true, force: true });
      } catch {
        // As for `remove`.
      }
    },
  };
}

/** Removes what hosts that are dead left behind: their folders and, on Linux, processes that still run from them. */
export async function sweepRuntimeFolders(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  for (const base of bases(env)) {
    for (const name of await readdir(base).catch(() => [])) {
      const path = join(base, name);
      if (!isLeftBehind(name) || !(await isOurs(path))) continue;
      await killUsersOf(path);
      await rm(path, { recursive: true, force: true }).catch(() => {});
    }
  }
}

const PREFIX = 'urutau-';

/** Longer socket paths are cut in silence by the system (sun_path less its closing zero). */
export const SOCKET_PATH_BYTES_MAX = process.platform === 'darwin' ? 103 : 107;

async function makeFolder(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const { pid, startedAt, namespace } = thisHost();
  const name = `${PREFIX}${pid}-${startedAt}-${namespace}-`;
  const short = bases(env).filter(
    (base) => Buffer.byteLength(socketIn(join(base, `${name}123456`))) <= SOCKET_PATH_BYTES_MAX,
  );
  let problem: unknown = new Error(`no base is short enough for a socket path of ${SOCKET_PATH_BYTES_MAX} bytes`);
  for (const base of short) {
    try {
      return await mkdtemp(join(base, name)); // Made with mode 0700.
    } catch (error) {
      problem = error;
    }
  }
  throw new UrutauError(
    'config-invalid',
    `no runtime folder can be made for a driver in ${bases(env).join(' or ')}: ${(problem as Error).message}`,
    {
      remedy: 'Set TMPDIR to a short path that the host can write to.',
      cause: problem,
    },
  );
}

function socketIn(path: string): string {
  return join(path, 's');
}

function bases({ XDG_RUNTIME_DIR }: Readonly<Record<string, string | undefined>>): string[] {
  const all = [XDG_RUNTIME_DIR, tmpdir(), '/tmp'].filter((base) => base?.startsWith('/'));
  return [...new Set(all as string[])];
}

interface HostIdentity {
  readonly pid: number;
  /** Clock ticks since boot on Linux, 0 elsewhere. Tells a living host from another process that got its number. */
  readonly startedAt: string;
  /** Process ids mean something only within one pid namespace: containers may share a folder for temporary files. */
  readonly namespace: string;
}

function thisHost(): HostIdentity {
  return { pid: process.pid, startedAt: startOf('self') ?? '0', namespace: pidNamespace() };
}

function isLeftBehind(name: string): boolean {
  const match = /^urutau-(\d+)-(\d+)-(\d+)-.{6}$/.exec(name);
  if (match === null) return false;
  const [, pid = '', startedAt, namespace] = match;
  return namespace === pidNamespace() && !isAlive(pid, startedAt);
}

function isAlive(pid: string, startedAt: string | undefined): boolean {
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const start = startOf(pid);
  return start === null || start === startedAt;
}

function startOf(pid: string): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null; // Field 22; the state is field 3.
  } catch {
    return null;
  }
}

function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
  } catch {
    return '0';
  }
}

async function isOurs(path: string): Promise<boolean> {
  const info = await lstat(path).catch(() => null);
  return info?.isDirectory() === true && info.uid === process.getuid?.();
}

const LOOKS_MAX = 40;
const BETWEEN_LOOKS_MS = 25;

async function endUsersOf(path: string): Promise<void> {
  for (let look = 0; look < LOOKS_MAX && (await killUsersOf(path)) > 0; look++) {
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_LOOKS_MS));
  }
}

/** A process whose environment names this folder was started from it; nothing else can carry its random name. */
async function killUsersOf(path: string): Promise<number> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const users = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return environment.includes(`=${path}/`) && pid !== process.pid && killed(pid);
    }),
  );
  return users.filter(Boolean).length;
}

function killed(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false; // It ended meanwhile.
  }
}

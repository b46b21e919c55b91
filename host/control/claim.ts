import { once } from 'node:events';
import { lstatSync, unlinkSync } from 'node:fs';
import { chmod, lstat, mkdtemp, readlink, rmdir, symlink, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { UrutauError } from '@urutau/contract';
import { makeFolder } from '../make-folder.ts';
import { call, NoHostRunning } from './call.ts';
import { type HostStatus, STATUS_PATH } from './messages.ts';
import { controlPath, fitsASocket, socketBehind } from './socket-path.ts';

/** Takes back what listening left on disk; the server itself must be closed before. */
type Release = () => Promise<void>;

/**
 * Makes `server` listen on the control socket of a state folder, which it makes where it is missing. The socket is the
 * lock of the folder: a living host's is never taken (`config-invalid`), a dead one's is replaced.
 */
export async function claim(server: Server, stateDir: string): Promise<Release> {
  const path = controlPath(stateDir);
  try {
    makeFolder(dirname(path), 0o700);
    return fitsASocket(path) ? await claimDirectly(server, path) : await claimByLink(server, path);
  } catch (error) {
    if (error instanceof UrutauError) throw error;
    throw new UrutauError(
      'config-invalid',
      `cannot listen on the control socket ${path}: ${(error as Error).message}`,
      {
        cause: error,
        remedy: 'Name a folder with --state-dir that this user can write to.',
      },
    );
  }
}

/** Each round ends with the claim, with a refusal, or after a socket that another host was quicker to take. */
const ROUNDS_MAX = 10;
const PROBE_MS = 2_000;
const FOLDER_PREFIX = 'urutau-control-';

async function claimDirectly(server: Server, path: string): Promise<Release> {
  await first(path, () => listen(server, path));
  return async () => {}; // The socket goes with the server.
}

/** The path is too long for a socket: it lies in a short, closed folder, with a link to it at the path. */
async function claimByLink(server: Server, path: string): Promise<Release> {
  const folder = await closedFolder();
  const socket = join(folder, 's');
  const release = async () => {
    if ((await readlink(path).catch(() => null)) === socket) await unlink(path);
    await unlink(socket).catch(() => {});
    await rmdir(folder).catch(() => {});
  };
  try {
    await listen(server, socket);
    await first(path, () => symlink(socket, path));
    return release;
  } catch (error) {
    server.close();
    await release();
    throw error;
  }
}

/** Mode 0700, as mkdtemp makes it. */
async function closedFolder(): Promise<string> {
  const base = [tmpdir(), '/tmp'].find((folder) => fitsASocket(join(folder, `${FOLDER_PREFIX}123456`, 's')));
  if (base === undefined) throw new Error(`${tmpdir()} is too long for a socket; set TMPDIR to a short path`);
  return await mkdtemp(join(base, FOLDER_PREFIX));
}

async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
  await chmod(path, 0o600);
}

/** `take` is atomic: of two hosts at the same moment, one gets the path and the other EADDRINUSE or EEXIST. */
async function first(path: string, take: () => Promise<void>): Promise<void> {
  for (let round = 1; ; round++) {
    try {
      return await take();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if ((code !== 'EADDRINUSE' && code !== 'EEXIST') || round === ROUNDS_MAX) throw error;
    }
    await removeIfDead(path);
  }
}

async function removeIfDead(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return;
  if (!found.isSocket() && !found.isSymbolicLink()) {
    throw new UrutauError('config-invalid', `${path} is not a socket, so it is left alone`, {
      remedy: 'Move it away, or name another --state-dir.',
    });
  }
  await refuseBesideAnother(path);
  const socket = await socketBehind(path);
  // Looked at again without a pause before it is removed: meanwhile a quicker host may have put its own in this place.
  const now = lstatSync(path, { throwIfNoEntry: false });
  if (now?.ino !== found.ino || now.mtimeMs !== found.mtimeMs) return;
  unlinkSync(path);
  // Of what a link leads to, only what a host made.
  if (!basename(dirname(socket)).startsWith(FOLDER_PREFIX)) return;
  await unlink(socket).catch(() => {});
  await rmdir(dirname(socket)).catch(() => {});
}

async function refuseBesideAnother(path: string): Promise<void> {
  const other = (await call(path, { method: 'GET', path: STATUS_PATH, timeoutMs: PROBE_MS }).catch((error) => {
    if (error instanceof NoHostRunning) return null;
    throw running(`a host already runs in ${dirname(path)}, but cannot be asked: ${(error as Error).message}`);
  })) as HostStatus | null;
  if (other !== null) throw running(`a host of pipeline ${other.pipeline} already runs (pid ${other.pid})`);
}

function running(message: string): UrutauError {
  return new UrutauError('config-invalid', message, {
    remedy: 'Look at it with `urutau-host table status`, or stop it first.',
  });
}

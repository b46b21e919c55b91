import { readlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** Where the control socket of a state folder lies: the socket, or a symbolic link to it where the path is too long for one. */
export function controlPath(stateDir: string): string {
  return join(resolve(stateDir), 'control.sock');
}

/** Longer socket paths are cut in silence by the system (sun_path less its closing zero). */
const SOCKET_PATH_BYTES_MAX = process.platform === 'darwin' ? 103 : 107;

export function fitsASocket(path: string): boolean {
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX;
}

/** The socket to connect to. The system follows a link too, but cuts its long path first. */
export async function socketBehind(path: string): Promise<string> {
  try {
    return resolve(dirname(path), await readlink(path));
  } catch {
    return path; // No link; whether there is anything, the connection will tell.
  }
}

import { readlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { SOCKET_PATH_BYTES_MAX } from '../supervisor/runtime-folder.ts';

/** Where the control socket of a state folder lies: the socket, or a symbolic link to it where the path is too long for one. */
export function controlPath(stateDir: string): string {
  return join(resolve(stateDir), 'control.sock');
}

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

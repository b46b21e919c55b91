// A cache of unpacked npm packages that are programs (a server, another Node), kept between runs.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/**
 * Fetches one exact version of a package unless it is there, and returns the folder it is unpacked in.
 * `prepare` may change the unpacked folder before anybody sees it. Install scripts are not run.
 *
 * @type {typeof import('./package-cache.d.mts').fetchPackage}
 */
export async function fetchPackage(name, version, prepare = () => {}) {
  const cache = cacheFolder();
  const folder = join(cache, `${name.replace('@', '').replace('/', '+')}-${version}`);
  if (existsSync(folder)) return folder;
  sweep(cache);
  const staging = mkdtempSync(join(cache, '.fetch-'));
  try {
    await npmInstall(`${name}@${version}`, staging);
    const unpacked = join(staging, 'node_modules', name);
    prepare(unpacked);
    openToAll(unpacked);
    moveInto(folder, unpacked);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return folder;
}

/**
 * True when another user of this machine can come to the folder, or to the place where it is going to be made.
 *
 * @type {typeof import('./package-cache.d.mts').reachableByOthers}
 */
export function reachableByOthers(folder) {
  for (let at = resolve(folder); ; at = dirname(at)) {
    if (existsSync(at) && (statSync(at).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

/** PostgreSQL refuses root and then runs as another user, for whom root's home is closed. */
function cacheFolder() {
  const uid = process.getuid?.();
  const folder = resolve(process.env.URUTAU_CACHE || defaultCacheFolder(uid));
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const { uid: owner, mode } = lstatSync(folder);
  if (uid !== undefined && (owner !== uid || (mode & 0o022) !== 0)) {
    throw new Error(
      `the cache ${folder} must belong to the user who runs this (uid ${uid}) and be writable by nobody else, because programs are run from it, ` +
        `but it belongs to uid ${owner} with mode ${(mode & 0o777).toString(8)}: remove it, or name another folder in URUTAU_CACHE`,
    );
  }
  if (uid === 0 && !reachableByOthers(folder)) {
    throw new Error(
      `the cache ${folder} lies under a folder that other users may not enter: name another folder in URUTAU_CACHE`,
    );
  }
  return folder;
}

function defaultCacheFolder(uid) {
  if (process.platform === 'win32') return join(process.env.LOCALAPPDATA ?? join(homedir(), 'AppData/Local'), 'urutau');
  if (uid === 0) return `/var/tmp/urutau-cache-${uid}`;
  if (process.platform === 'darwin') return join(homedir(), 'Library/Caches/urutau');
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'urutau');
}

/** Removes what a fetch left that was killed; a living one is not that old. */
function sweep(cache) {
  for (const name of readdirSync(cache).filter((entry) => entry.startsWith('.fetch-'))) {
    const ageMs = Date.now() - (statSync(join(cache, name), { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (ageMs > 3_600_000) rmSync(join(cache, name), { recursive: true, force: true });
  }
}

/** `npm install` instead of `npm pack`, because it unpacks by itself: no `tar` is needed. */
async function npmInstall(spec, folder) {
  // Under `npm run` this is the npm that runs us; it is a script, so it needs no shell on Windows either.
  const script = process.env.npm_execpath?.endsWith('.js') ? process.env.npm_execpath : undefined;
  const [command, first] = script ? [process.execPath, [script]] : ['npm', []];
  const flags = [
    '--no-save',
    '--no-package-lock',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--loglevel=error',
  ];
  const child = spawn(command, [...first, 'install', spec, '--prefix', folder, ...flags], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: script === undefined && process.platform === 'win32',
  });
  let output = '';
  for (const pipe of [child.stdout, child.stderr]) pipe.setEncoding('utf8').on('data', (text) => (output += text));
  const code = await new Promise((done, fail) => child.once('error', fail).once('close', done));
  if (code !== 0)
    throw new Error(`could not fetch the npm package ${spec} (npm ended with ${code}):\n${output.trim()}`);
}

/** Whatever the umask was, everybody may read, and run what its owner may run. */
function openToAll(path) {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  const runnable = stat.isDirectory() || (stat.mode & 0o100) !== 0;
  chmodSync(path, (stat.mode & 0o755) | 0o444 | (runnable ? 0o111 : 0));
  if (stat.isDirectory()) for (const name of readdirSync(path)) openToAll(join(path, name));
}

/** The rename is the lock: of two who fetch at once one loses, and uses the other's folder. */
function moveInto(folder, unpacked) {
  try {
    renameSync(unpacked, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

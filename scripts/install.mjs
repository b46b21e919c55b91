// Installs the dependencies when they are not there. Needs nothing but Node and npm.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const DEPENDENCY_FIELDS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

async function main() {
  try {
    if (!(await install())) console.log('everything is installed');
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

/** @type {typeof import('./install.d.mts').install} */
export async function install() {
  const reason = installNeeded();
  if (reason === undefined) return false;
  console.log(`npm ci (${reason})`);
  // Under `npm run` this is the npm that runs us; it is a script, so it needs no shell on Windows either.
  const script = process.env.npm_execpath?.endsWith('.js') ? process.env.npm_execpath : undefined;
  const [command, first] = script ? [process.execPath, [script]] : ['npm', []];
  const child = spawn(command, [...first, 'ci', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: script === undefined && process.platform === 'win32',
  });
  const code = await new Promise((done, fail) => child.once('error', fail).once('close', done));
  if (code !== 0) throw new Error(`npm ci ended with ${code}`);
  return true;
}

/** @type {typeof import('./install.d.mts').installNeeded} */
export function installNeeded() {
  const wanted = readJson('package-lock.json')?.packages;
  if (wanted === undefined) return 'there is no package-lock.json';
  // npm writes down there what it has installed.
  const present = readJson('node_modules/.package-lock.json')?.packages;
  if (present === undefined) return 'nothing is installed';
  for (const [path, entry] of Object.entries(wanted)) {
    if (!path.includes('node_modules/')) {
      if (!declaresTheSame(readJson(join(path, 'package.json')) ?? {}, entry))
        return `${join(path, 'package.json')} has changed`;
    } else if (present[path] === undefined) {
      // An optional package is left out where it does not fit the platform.
      if (!entry.optional) return `${path} is missing`;
    } else if (
      present[path].version !== entry.version ||
      present[path].integrity !== entry.integrity ||
      !existsSync(join(root, path))
    ) {
      return `${path} is not what package-lock.json says`;
    }
  }
  const extra = Object.keys(present).find((path) => path.includes('node_modules/') && wanted[path] === undefined);
  return extra && `${extra} is not in package-lock.json`;
}

function declaresTheSame(manifest, locked) {
  return DEPENDENCY_FIELDS.every((field) => {
    const [declared, known] = [manifest[field] ?? {}, locked[field] ?? {}];
    const names = Object.keys(declared);
    return names.length === Object.keys(known).length && names.every((name) => declared[name] === known[name]);
  });
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8'));
  } catch {
    return undefined;
  }
}

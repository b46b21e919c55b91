import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { guardArguments, guardIsTold } from '../../../../host/supervisor/guard.ts';
import { isRunning } from './supervise.ts';

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'guard-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Leads a group of its own, has a child in it and one in another session, and none of them ends by SIGTERM. */
async function family(env: Record<string, string>): Promise<{ leader: ChildProcess; pids: number[] }> {
  const leader = spawn(
    '/bin/sh',
    ['-c', 'trap "" TERM; sleep 600 & echo $$ $!; setsid sh -c \'echo $$; exec sleep 600\'; wait'],
    { detached: true, env: { PATH: process.env['PATH']!, ...env }, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const pids: number[] = [];
  onTestFinished(() => {
    for (const pid of pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  });
  let said = '';
  while (said.split(/\s+/).filter(Boolean).length < 3) said += (await once(leader.stdout!, 'data'))[0];
  pids.push(...said.split(/\s+/).filter(Boolean).map(Number));
  return { leader, pids };
}

function ignoresSigterm(pid: number): boolean {
  const ignored = /^SigIgn:\s+(\w+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]!;
  return (BigInt(`0x${ignored}`) & (1n << 14n)) !== 0n;
}

function startGuard(folder: string, { shell = '/bin/sh', path = '/usr/bin:/bin' } = {}) {
  const guard = spawn(shell, guardArguments(folder), {
    cwd: '/',
    env: { PATH: path },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const exited = once(guard, 'exit');
  onTestFinished(() => void guard.kill('SIGKILL'));
  return { guard, exited, told: (pgid: number) => guard.stdin!.write(guardIsTold(pgid)) };
}

test.runIf(process.platform === 'linux').each(['/bin/sh', '/bin/bash'].filter((shell) => existsSync(shell)))(
  'when its host is gone the guard in %s ends the group and who left it, removes the folder, and is gone',
  async (shell) => {
    const folder = place();
    const { leader, pids } = await family({ URUTAU_SOCKET: `${folder}/s` });
    const bystander = await family({ URUTAU_SOCKET: `${folder}-of-another/s` });
    const { guard, exited, told } = startGuard(folder, { shell });
    told(leader.pid!);

    while (!ignoresSigterm(guard.pid!)) await new Promise((resolve) => setImmediate(resolve));
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) guard.kill(signal);
    expect(pids.every(isRunning)).toBe(true);
    guard.stdin!.end();
    await exited;

    expect(pids.filter(isRunning)).toEqual([]);
    expect(bystander.pids.filter(isRunning)).toEqual(bystander.pids);
    expect(existsSync(folder)).toBe(false);
  },
);

test('a host that died before it could name the group is guarded too', async () => {
  const folder = place();
  const { pids } = await family({ URUTAU_CONFIG: `${folder}/config.json` });
  const { guard, exited } = startGuard(folder);

  guard.stdin!.end();
  await exited;

  expect(pids.filter(isRunning)).toEqual(process.platform === 'linux' ? [] : pids);
});

test('a group whose members hide their environment is ended, and one in another session outlives that', async () => {
  const { leader, pids } = await family({});
  const { guard, exited, told } = startGuard(place());
  told(leader.pid!);

  guard.stdin!.end();
  await exited;

  expect(pids.map(isRunning)).toEqual([false, false, true]);
});

test.runIf(process.platform === 'linux')(
  'a group of the same number whose leader began at another time is left alone',
  async () => {
    const { leader, pids } = await family({});
    // What stands in /proc once the number has been given to another process.
    const programs = join(place(), 'bin');
    mkdirSync(programs);
    const stat = readFileSync(`/proc/${leader.pid}/stat`, 'latin1').trim().split(' ');
    writeFileSync(join(programs, 'before'), stat.join(' '));
    writeFileSync(join(programs, 'after'), stat.with(21, String(Number(stat[21]) + 1)).join(' '));
    const now = join(programs, 'now');
    writeFileSync(
      join(programs, 'cat'),
      `#!/bin/sh\n[ -e ${now} ] && exec /bin/cat ${programs}/after\n: >${now}\nexec /bin/cat ${programs}/before\n`,
    );
    chmodSync(join(programs, 'cat'), 0o755);
    const { guard, exited, told } = startGuard(place(), { path: `${programs}:/usr/bin:/bin` });
    told(leader.pid!);

    guard.stdin!.end();
    await exited;

    expect(readdirSync(programs)).toContain('now');
    expect(pids.filter(isRunning)).toEqual(pids);
  },
);

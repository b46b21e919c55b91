import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { FIXTURES } from './supervise.ts';

/** Starts small-host.ts, bundled to `file`, waits until its driver is ready, and never leaves it behind. */
export async function spawnHost(file: string, fixture: string, manner = 'run', env: Record<string, string> = {}) {
  // A low limit, so that a host can come to the end of its file descriptors.
  const limited = ['-c', 'ulimit -n 256; exec "$@"', 'sh', process.execPath];
  const child = spawn('/bin/sh', [...limited, file, fixture, manner], {
    env: { ...process.env, FIXTURES, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const [line] = await once(createInterface(child.stderr), 'line');
  const { pid, endpoint } = JSON.parse(line) as { pid: number; endpoint: string };
  return {
    driver: { pid },
    folder: dirname(endpoint.slice('unix:'.length)),
    exited,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
  };
}

import { setTimeout as delay } from 'node:timers/promises';
import { HostProcess, waitFor } from '../pipeline/host-process.ts';
import { bundle } from '../sdk/bundle.ts';
import { driverFolder, processesOf } from './driver-folder.ts';

/** The watchdog's 15 s, and two more. */
const GONE_MS = 17_000;
/** Both drivers, each with two children. */
const PROCESSES = 6;
const LOOK_EVERY_MS = 100;

const SOURCE = await bundle('../supervision/stuck-source.ts');
const SINK = await bundle('../supervision/stuck-sink.ts');

export interface Killed {
  /** Per host: how many processes its drivers had when it was killed. */
  readonly had: readonly number[];
  /** From the last kill until nothing was left. */
  readonly goneMs: number;
}

/**
 * Starts so many hosts at once, whose drivers heed nothing and leave children behind in their group and out of it. Kills
 * each with SIGKILL as soon as its drivers have a random number of processes, and waits until nothing of any is left.
 */
export async function killHosts(
  hosts: number,
  random: () => number,
  env: Record<string, string> = {},
): Promise<Killed> {
  const running = Array.from({ length: hosts }, () => ({
    ...startHost(env),
    killAt: 1 + Math.floor(random() * PROCESSES),
  }));
  const folders = running.flatMap((host) => host.folders);
  const had: number[] = [];
  while (had.length < hosts) {
    for (const { host, folders, killAt } of running) {
      if (!host.alive) continue;
      const processes = processesOf(folders).length;
      if (processes < killAt) continue;
      await host.kill();
      had.push(processes);
    }
    await delay(LOOK_EVERY_MS);
  }
  const startMs = performance.now();
  await waitFor(
    'the end of everything that the drivers started',
    GONE_MS,
    async () => (processesOf(folders).length === 0 ? true : null),
    () => processesOf(folders).join('\n'),
  );
  return { had, goneMs: performance.now() - startMs };
}

function startHost(env: Record<string, string>): { host: HostProcess; folders: string[] } {
  const source = driverFolder('source', [process.execPath, SOURCE]);
  const sink = driverFolder('sink', [process.execPath, SINK]);
  const host = new HostProcess({
    pipeline: {
      pipeline: 'killed',
      source: { driver: source, config: { defiant: true }, snapshotMode: 'none' },
      sink: { driver: sink, config: { defiant: true } },
      tables: [{ source: 'blobs', target: 'blobs' }],
    },
    env,
  });
  return { host: host.start(), folders: [source, sink] };
}

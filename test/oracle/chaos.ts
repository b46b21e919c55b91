import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { HostProgram } from '../services/host-program.ts';
import type { Random } from './random.ts';

export type Victim = 'source' | 'sink' | 'host';
export type Deaths = Record<Victim, number>;

const GAP_MEAN_MS = 25_000;

/** Kills a random process of the pipeline again and again, until told to stop. A host that was killed is started again. */
export async function chaos(
  host: HostProgram,
  { random, deaths, signal }: { random: Random; deaths: Deaths; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    await pause(random.exponential(GAP_MEAN_MS), undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    deaths[await killOne(host, random.below(3), random.chance(0.3))]++;
  }
}

/** Answers what died. A driver is waited for: on a busy machine nothing but hosts would die otherwise. */
export async function killOne(host: HostProgram, which: number, forget: boolean): Promise<Victim> {
  if (which === 2) {
    await host.kill();
    if (forget) rmSync(host.stateDir, { recursive: true, force: true });
    host.start();
    return 'host';
  }
  const role = which === 0 ? 'source' : 'sink';
  const status = await host.until(`a ${role} driver`, (now) => now[role].pid !== null);
  try {
    process.kill(status[role].pid!, 'SIGKILL');
  } catch {
    // It has just died of an earlier kill.
  }
  return role;
}

import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { HostProgram } from '../services/host-program.ts';
import type { Random } from './random.ts';

export type Victim = (typeof VICTIMS)[number];
export type Deaths = Record<Victim, number>;

const VICTIMS = ['source', 'sink', 'host'] as const;
/** 25 s in the mean. */
const GAP_MS = { min: 5_000, max: 45_000 };

/**
 * Kills a process of the pipeline again and again, until told to stop: each of the three once, in random order, before one
 * comes again. A host that was killed is started again.
 */
export async function chaos(
  host: HostProgram,
  { random, deaths, signal }: { random: Random; deaths: Deaths; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    for (const victim of random.shuffled(VICTIMS)) {
      await pause(random.between(GAP_MS.min, GAP_MS.max), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await kill(host, victim, random.chance(0.3));
      deaths[victim]++;
    }
  }
}

/** A driver is waited for: on a busy machine nothing but hosts would die otherwise. `forget`: the host's state folder. */
export async function kill(host: HostProgram, victim: Victim, forget: boolean): Promise<void> {
  if (victim === 'host') {
    await host.kill();
    if (forget) rmSync(host.stateDir, { recursive: true, force: true });
    host.start();
    return;
  }
  const status = await host.until(`a ${victim} driver`, (now) => now[victim].pid !== null);
  try {
    process.kill(status[victim].pid!, 'SIGKILL');
  } catch {
    // It has just died of an earlier kill.
  }
}

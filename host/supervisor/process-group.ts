import { readdirSync, readFileSync } from 'node:fs';

/** A driver and all that it started, as one. The leader's pid is the group's id. */
export class ProcessGroup {
  readonly pgid: number;
  readonly #gone: Promise<void>;
  #isGone = false;

  /** `leaderExited` resolves when the leader has been reaped; only then can the group be gone. */
  constructor(pgid: number, leaderExited: Promise<unknown>) {
    this.pgid = pgid;
    this.#gone = leaderExited.then(() => this.#watch());
  }

  /** Resolves when no process of the group runs any more. */
  get gone(): Promise<void> {
    return this.#gone;
  }

  /** Does nothing once the group is gone: its number may belong to others by then. */
  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (this.#isGone) return;
    try {
      process.kill(-this.pgid, signal);
    } catch {
      // ESRCH: the last one ended just now. EPERM (macOS): only zombies are left.
    }
  }

  async #watch(): Promise<void> {
    while (isAlive(this.pgid)) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    this.#isGone = true;
  }
}

/** A group of zombies that nobody reaps (a container whose first process does not) counts as gone. */
function isAlive(pgid: number): boolean {
  try {
    process.kill(-pgid, 0);
  } catch {
    return false;
  }
  if (process.platform !== 'linux') return true;
  return readdirSync('/proc').some((name) => /^\d+$/.test(name) && runsInGroup(name, pgid));
}

function runsInGroup(pid: string, pgid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command in parentheses may hold anything, so fields are counted from its end: state, ppid, pgrp.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === String(pgid) && state !== 'Z' && state !== 'X';
  } catch {
    return false; // It ended meanwhile.
  }
}

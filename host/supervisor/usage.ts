import { readFileSync } from 'node:fs';

export interface Usage {
  readonly cpuSeconds: number;
  readonly peakMemoryBytes: number;
}

export const NO_USAGE: Usage = { cpuSeconds: 0, peakMemoryBytes: 0 };

/** The kernel shows times to programs in hundredths of a second, on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/**
 * What a process and its living descendants have used so far: CPU of user and system, with that of the children they
 * have waited for, and the sum of their memory peaks. Zero where there is no /proc, and for a process that has ended.
 */
export function usageOf(pid: number): Usage {
  let [cpuTicks, peakKib] = [0, 0];
  for (const member of tree(pid)) {
    try {
      const stat = readFileSync(`/proc/${member}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      cpuTicks += [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0); // utime, stime, cutime, cstime
      peakKib += Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${member}/status`, 'latin1'))?.[1] ?? 0);
    } catch {
      // It ended meanwhile.
    }
  }
  return { cpuSeconds: cpuTicks / TICKS_PER_SECOND, peakMemoryBytes: peakKib * 1_024 };
}

/** The larger of each: a later sample of the same process never takes back what an earlier one has seen. */
export function higher(a: Usage, b: Usage): Usage {
  return {
    cpuSeconds: Math.max(a.cpuSeconds, b.cpuSeconds),
    peakMemoryBytes: Math.max(a.peakMemoryBytes, b.peakMemoryBytes),
  };
}

function tree(pid: number): number[] {
  const members = [pid];
  for (const member of members) {
    try {
      const children = readFileSync(`/proc/${member}/task/${member}/children`, 'latin1');
      members.push(...children.split(' ').filter(Boolean).map(Number));
    } catch {
      // It ended meanwhile, or the kernel does not tell.
    }
  }
  return members;
}

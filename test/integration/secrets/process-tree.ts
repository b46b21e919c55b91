import { readdirSync, readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

export interface SeenProcess {
  readonly pid: number;
  readonly parent: number;
  readonly commandLine: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Looks again and again at a process and all that descend from it, until the test ends: what they were started with. */
export function watchTree(root: number): { seen(): SeenProcess[] } {
  const found = new Map<string, SeenProcess>();
  const look = () => {
    const members = new Set([root]);
    for (const process of allProcesses()) {
      if (!members.has(process.parent) && process.pid !== root) continue;
      members.add(process.pid);
      // A wrapper becomes the program that it starts.
      found.set(`${process.pid} ${process.commandLine}`, process);
    }
  };
  const timer = setInterval(look, 20);
  onTestFinished(() => clearInterval(timer));
  return {
    seen: () => {
      look();
      return [...found.values()];
    },
  };
}

/** Parents come before their children here, for ids grow; after they have begun anew a child may be missed once. */
function allProcesses(): SeenProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b)
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
        const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
        const environment = Object.fromEntries(
          variables.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
        );
        return [{ pid, parent, commandLine, environment }];
      } catch {
        return []; // It ended meanwhile.
      }
    });
}

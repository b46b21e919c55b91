import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { endWithUs } from './end-with-us.mjs';

const TICKS_PER_SECOND = 100;
const SAMPLE_MS = 50;

/**
 * Runs one command of a floor tool to its end: wall time, CPU of it and its children, the highest peak of memory, and
 * the CPU that the database server spent meanwhile. Throws with the last of its stderr when it fails.
 */
export async function measure(command, args, { server, role = 'floor', env } = {}) {
  const serverBefore = cpuOfTree(server?.pid);
  const startMs = performance.now();
  // The shell knows to the hundredth what its child has used; Node does not tell.
  const child = spawn('sh', ['-c', '"$@"; code=$?; times >&3; exit $code', 'measure', command, ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  endWithUs(child);
  let peakMemoryBytes = 0;
  const sampler = setInterval(() => {
    for (const pid of treeOf(child.pid).slice(1)) peakMemoryBytes = Math.max(peakMemoryBytes, peakOf(pid));
  }, SAMPLE_MS);
  let [errors, times] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text) => (errors = (errors + text).slice(-2000)));
  child.stdio[3].setEncoding('utf8').on('data', (text) => (times += text));
  const code = await new Promise((done, fail) => child.once('error', fail).once('close', done));
  const seconds = (performance.now() - startMs) / 1000;
  clearInterval(sampler);
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${errors.trim()}`);
  const processes = [{ role, cpuSeconds: childSeconds(times), peakMemoryBytes }];
  return { seconds, processes, ...(server ? { serverCpuSeconds: cpuOfTree(server.pid) - serverBefore } : {}) };
}

/** The second line of `times` is user and system of the children, as 0m1.23s. */
function childSeconds(times) {
  const [user, system] = times
    .trim()
    .split('\n')[1]
    .split(' ')
    .map((text) => {
      const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/.exec(text);
      return 60 * Number(minutes) + Number(seconds);
    });
  return user + system;
}

/** CPU seconds so far of a process, what it has waited for, and its living descendants; 0 without a pid. */
export function cpuOfTree(pid) {
  if (pid === undefined) return 0;
  let ticks = 0;
  for (const member of treeOf(pid)) {
    try {
      const stat = readFileSync(`/proc/${member}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      ticks += [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    } catch {
      // It ended meanwhile.
    }
  }
  return ticks / TICKS_PER_SECOND;
}

function treeOf(pid) {
  const members = [pid];
  for (const member of members) {
    try {
      const children = readFileSync(`/proc/${member}/task/${member}/children`, 'latin1');
      members.push(...children.split(' ').filter(Boolean).map(Number));
    } catch {
      // It ended meanwhile.
    }
  }
  return members;
}

function peakOf(pid) {
  try {
    return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

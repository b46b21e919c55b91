import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { endWithUs, signalGroup } from './end-with-us.mjs';

const TICKS_PER_SECOND = 100;
const SAMPLE_MS = 50;
const END_SECONDS_MAX = 20;
const NEWLINE = 10;

/**
 * Runs one command of another tool to its end: wall time, CPU of it and its children, the highest peak of memory, and
 * the CPU that the database server spent meanwhile. One that never ends by itself is timed until it has printed
 * `untilLines` lines, and then asked to end. Throws with the last of its stderr when it fails or takes too long.
 */
export async function measure(command, args, { server, role = 'floor', env, untilLines, secondsMax } = {}) {
  const serverBefore = cpuOfTree(server?.pid);
  const startMs = performance.now();
  // The shell knows to the hundredth what its child has used; Node does not tell. It outlives a SIGTERM to the group.
  const script = 'trap : TERM; "$@"; code=$?; times >&3; exit $code';
  const child = spawn('sh', ['-c', script, 'measure', command, ...args], {
    stdio: ['ignore', untilLines === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, ...env },
  });
  endWithUs(child, { group: true });
  let peakMemoryBytes = 0;
  const sampler = setInterval(() => {
    for (const pid of treeOf(child.pid).slice(1)) peakMemoryBytes = Math.max(peakMemoryBytes, peakOf(pid));
  }, SAMPLE_MS);
  let overrun;
  const killAfter = (seconds, what) =>
    setTimeout(() => {
      overrun = `${what} ${seconds} s`;
      signalGroup(child, 'SIGKILL');
    }, seconds * 1000);
  let timer = secondsMax === undefined ? undefined : killAfter(secondsMax, 'took more than');
  let endMs;
  if (untilLines !== undefined) {
    onceLines(child.stdout, untilLines, () => {
      endMs = performance.now();
      clearTimeout(timer);
      timer = killAfter(END_SECONDS_MAX, 'did not end on SIGTERM within');
      signalGroup(child, 'SIGTERM');
    });
  }
  let [errors, times] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text) => (errors = (errors + text).slice(-2000)));
  child.stdio[3].setEncoding('utf8').on('data', (text) => (times += text));
  const code = await new Promise((done, fail) => child.once('error', fail).once('close', done));
  if (untilLines === undefined) endMs = performance.now();
  clearInterval(sampler);
  clearTimeout(timer);
  if (overrun !== undefined) throw new Error(`${command} ${overrun}: ${errors.trim()}`);
  if (endMs === undefined) throw new Error(`${command} ended with ${code} before line ${untilLines}: ${errors.trim()}`);
  if (untilLines === undefined && code !== 0) throw new Error(`${command} ended with ${code}: ${errors.trim()}`);
  const processes = [{ role, cpuSeconds: childSeconds(times), peakMemoryBytes }];
  return {
    seconds: (endMs - startMs) / 1000,
    processes,
    ...(server ? { serverCpuSeconds: cpuOfTree(server.pid) - serverBefore } : {}),
  };
}

function onceLines(stream, lines, reached) {
  let count = 0;
  stream.on('data', (chunk) => {
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) {
      if (++count === lines) reached();
    }
  });
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

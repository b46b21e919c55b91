import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { WriteStream } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { describeError } from './cli/describe-error.ts';
import { EXIT } from './cli/exit-code.ts';
import { runCommandLine } from './cli/program.ts';
import type { Shell, Terminal } from './cli/shell.ts';
import type { Usage } from './supervisor/usage.ts';

// A report of Node would hold the environment, where secrets come from, whatever NODE_OPTIONS asks for.
Object.assign(process.report, {
  reportOnFatalError: false,
  reportOnUncaughtException: false,
  reportOnSignal: false,
  excludeEnv: true,
});

const shell: Shell = {
  env: process.env,
  out: terminal(process.stdout),
  err: terminal(process.stderr),
  interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  places: {
    hostDirectory: dirname(fileURLToPath(import.meta.url)),
    installedDirectory: join(process.env['XDG_DATA_HOME'] || join(homedir(), '.local/share'), 'urutau/drivers'),
  },
  ask,
  onInterrupt,
  exit: (code) => process.exit(code),
  usage,
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  random: Math.random,
  randomId: randomUUID,
  nodeVersion: process.versions.node,
};

// A fault of ours that nothing caught: the drivers end with the process, and the next run goes on where this one was.
process.on('uncaughtException', (error) => {
  shell.err.write(describeError(error, { stack: true }));
  process.exit(EXIT.failed);
});
const exitCode = await runCommandLine(process.argv.slice(2), shell);
// Everything is closed; only timers of closed gRPC channels are left, which would hold the process for a moment more.
await Promise.all([process.stdout, process.stderr].map(written));
process.exit(exitCode);

function terminal(stream: WriteStream): Terminal {
  // The reader of a pipe may go away, as `head` does.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  return {
    write: (text) => void stream.write(text),
    isTerminal: stream.isTTY === true,
    get columns() {
      // Some terminals say 0.
      return stream.columns || 80;
    },
  };
}

/** Resolves when what was written has left, or has nowhere to go: a slow reader's pipe takes long texts in parts. */
function written(stream: WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()));
}

async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}

function onInterrupt(listener: () => void): () => void {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, peakMemoryBytes: peakMemoryBytes() };
}

/** The system's own figure for this program; that of resourceUsage begins with the memory of whoever started it. */
function peakMemoryBytes(): number {
  try {
    return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'latin1'))![1]) * 1024;
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

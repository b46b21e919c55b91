import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../../host/dist/main.js', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface HostCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** So far. */
  readonly written: { readonly stdout: string; readonly stderr: string };
  /** Resolves when `text` stands in what was written to stderr; rejects when the command ends without it. */
  until(text: string): Promise<void>;
}

/** Starts the built program as a user does. It is never left behind. */
export function startHost(args: readonly string[], env: Readonly<Record<string, string>> = {}): HostCommand {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  const exited = once(child, 'close');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const waiting = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      written[stream] += text;
      for (const look of waiting) look();
    });
  }
  return {
    child,
    written,
    ended: exited.then(([code]) => ({ code, ...written })),
    until: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!written.stderr.includes(text)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
        void exited.then(() => reject(new Error(`the host ended before it said ${text}:\n${written.stderr}`)));
      }),
  };
}

/** Runs the program to its end. */
export function hostCommand(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return startHost(args, env).ended;
}

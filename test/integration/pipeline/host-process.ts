import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import type { PipelineStatus } from '../../../host/pipeline/pipeline.ts';

const MAIN = resolve(import.meta.dirname, '../../../host/dist/main.js');

export interface HostOptions {
  pipeline: Record<string, unknown>;
  args?: string[];
  /** A folder that outlives the host; one of the test's own by default. */
  folder?: string;
  env?: Record<string, string>;
  /** File to which its standard output is appended; part of `output` by default. */
  stdout?: string;
  /** Takes what ends the host; the end of the test by default. */
  atEnd?: (cleanup: () => Promise<void>) => void;
}

/** A folder that goes with the test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The host as a user runs it: the bundled program as a process, with a pipeline file. Ends with the test. */
export class HostProcess {
  readonly folder: string;
  readonly file: string;
  readonly #options: HostOptions;
  #child: ChildProcess | null = null;
  #metrics: string | null = null;
  /** What all runs have printed, the newest last. */
  output = '';
  /** What this run has printed until its address was found. */
  #printed = '';

  constructor(options: HostOptions) {
    this.#options = options;
    this.folder = options.folder ?? testFolder();
    this.file = join(this.folder, 'pipeline.yaml');
    writeFileSync(this.file, stringify(options.pipeline));
    (options.atEnd ?? onTestFinished)(() => this.kill());
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  get stateDir(): string {
    return join(this.folder, 'state');
  }

  start(...more: string[]): this {
    return this.startWith({}, ...more);
  }

  /** Starts it with variables of its own, once. */
  startWith(env: Record<string, string>, ...more: string[]): this {
    const args = [
      'run',
      '-f',
      this.file,
      '--state-dir',
      this.stateDir,
      '--metrics-addr',
      '127.0.0.1:0',
      '--log-format',
      'json',
    ];
    const stdout = this.#options.stdout === undefined ? 'pipe' : openSync(this.#options.stdout, 'a');
    const child = spawn(process.execPath, [MAIN, ...args, ...(this.#options.args ?? []), ...more], {
      stdio: ['ignore', stdout, 'pipe'],
      env: { ...process.env, ...this.#options.env, ...env },
    });
    if (typeof stdout === 'number') closeSync(stdout);
    this.#child = child;
    this.#metrics = null;
    this.#printed = '';
    const keep = (chunk: Buffer) => {
      this.output = (this.output + chunk.toString()).slice(-1_000_000);
      if (this.#child === child && this.#metrics === null) this.#printed += chunk.toString();
    };
    child.stdout?.on('data', keep);
    child.stderr!.on('data', keep);
    return this;
  }

  /** Waits for the end by itself. */
  async exitCode(): Promise<number | null> {
    const child = this.#child!;
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child.exitCode;
  }

  async stop(): Promise<number | null> {
    this.#child!.kill('SIGINT');
    return this.exitCode();
  }

  /** kill -9, as a crash would; waits until the process is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  get alive(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** How the last run ended; nulls while it lives. */
  get ended(): { code: number | null; signal: NodeJS.Signals | null } {
    return { code: this.#child?.exitCode ?? null, signal: this.#child?.signalCode ?? null };
  }

  /** The status page, or null while there is none. */
  async status(): Promise<PipelineStatus | null> {
    try {
      this.#metrics ??= this.#metricsAddress();
      if (this.#metrics === null) return null;
      return (await (await fetch(`http://${this.#metrics}/statusz`)).json()) as PipelineStatus;
    } catch {
      return null;
    }
  }

  /** Asks for the status until the condition holds; throws with the host's last words when it ends before. */
  async until(
    what: string,
    condition: (status: PipelineStatus) => boolean,
    withinMs = 60_000,
  ): Promise<PipelineStatus> {
    return waitFor(
      what,
      withinMs,
      async () => {
        const status = await this.status();
        if (status && condition(status)) return status;
        if (!this.alive) throw new Error(`the host ended before ${what}:\n${this.output.slice(-4000)}`);
        return null;
      },
      () => this.output.slice(-4000),
    );
  }

  #metricsAddress(): string | null {
    const line = this.#printed.split('\n').find((text) => text.includes('metrics are served'));
    return line ? (/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? null) : null;
  }
}

/** Polls until the answer is not null. What is waited for lives in other processes, which cannot call back. */
export async function waitFor<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | null>,
  context: () => string = () => '',
): Promise<T> {
  const untilMs = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (Date.now() > untilMs) throw new Error(`${what} did not come about within ${withinMs} ms\n${context()}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8'));
}

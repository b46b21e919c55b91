import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import type { PipelineStatus } from '../../host/pipeline/status.ts';
import { waitFor } from './wait-for.ts';

/** As bundled by the build. */
const MAIN = resolve(import.meta.dirname, '../../host/dist/main.js');

/** A host that was stopped takes the question and never answers. */
const STATUS_MS_MAX = 5_000;

export interface HostOptions {
  pipeline: Record<string, unknown>;
  args?: string[];
  /** Exists, and outlives the host: pipeline file and state are kept in it. */
  folder: string;
  env?: Record<string, string>;
  /** File to which its standard output is appended; part of `output` by default. */
  stdout?: string;
  /** The bundled program, where it is not beside this file's own repository. */
  main?: string;
}

/** The host as a user runs it: the bundled program as a process, with a pipeline file. Whoever made it ends it. */
export class HostProgram {
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
    this.folder = options.folder;
    this.file = join(this.folder, 'pipeline.yaml');
    writeFileSync(this.file, stringify(options.pipeline));
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
    const program = this.#options.main ?? MAIN;
    const child = spawn(process.execPath, [program, ...args, ...(this.#options.args ?? []), ...more], {
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
      return (await (
        await fetch(`http://${this.#metrics}/statusz`, { signal: AbortSignal.timeout(STATUS_MS_MAX) })
      ).json()) as PipelineStatus;
    } catch {
      return null;
    }
  }

  /** The metrics page, once the host serves it. */
  async scrape(): Promise<string> {
    this.#metrics ??= this.#metricsAddress();
    return (await fetch(`http://${this.#metrics}/metrics`)).text();
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

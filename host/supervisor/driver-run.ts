import { LIMIT } from '@urutau/contract';
import { faultPoint } from '../fault-point.ts';
import type { Log } from '../observe/log.ts';
import { type Clock, pause } from './clock.ts';
import type { Fault } from './diagnose.ts';
import { DriverLog } from './driver-log.ts';
import { watchHeartbeat } from './heartbeat.ts';
import { type Mask, maskOf, NO_MASK } from './mask.ts';
import { type FirstLine, readReadiness, takeFirstLine } from './readiness.ts';
import { type DriverProcess, type SpawnOptions, spawnDriver } from './spawn.ts';
import { killGroup, terminate } from './terminate.ts';
import { higher, NO_USAGE, type Usage, usageOf } from './usage.ts';

/** What the supervisor asks of a driver once it is connected. */
export interface DriverConnection {
  heartbeat(signal: AbortSignal): Promise<void>;
  shutdown(signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface DriverRunOptions extends SpawnOptions {
  /** Connects and does the handshake. `mask` takes secrets out of what the driver says. */
  readonly connect: (endpoint: string, token: string, mask: Mask) => Promise<DriverConnection>;
  readonly readyMs: number;
  readonly stopMs: number;
  readonly heartbeat: { readonly everyMs: number; readonly answerMs: number; readonly misses: number };
  readonly clock: Clock;
  readonly log: Log;
  /** Texts that must not get through from what the driver says. */
  readonly secrets: readonly string[];
}

export interface DriverRunEvents {
  /** At most once. */
  ready(driver: { endpoint: string; token: string; pid: number }): void;
  /** At most once, and never for an end that was asked for before it came. `stderr` is its last 64 KiB. */
  lost(fault: Fault, stderr: string): void;
  /** Once, and last: nothing is left of the process or its group. */
  gone(): void;
}

/** A handshake takes milliseconds; a driver that does not answer for so long will not. */
const HANDSHAKE_MS_MAX = 10_000;
const USAGE_EVERY_MS = 500;
/** After an exit, for the words that are still in the pipe: a grandchild may hold it open for ever. */
const LAST_WORDS_MS = 250;

/** One process of a driver, from its spawn until nothing is left of it. */
export class DriverRun {
  readonly #options: DriverRunOptions;
  readonly #events: DriverRunEvents;
  readonly #ending = new AbortController();
  #how: { kind: 'terminate'; askMs: number } | { kind: 'kill' } = { kind: 'kill' };
  #usage: Usage = NO_USAGE;
  #pid: number | null = null;
  #mask = NO_MASK;

  constructor(options: DriverRunOptions, events: DriverRunEvents) {
    this.#options = options;
    this.#events = events;
  }

  get pid(): number | null {
    return this.#pid;
  }

  get usage(): Usage {
    if (this.#pid !== null) this.#usage = higher(this.#usage, usageOf(this.#pid));
    return this.#usage;
  }

  /** Never rejects: the events tell how it goes. */
  async live(): Promise<void> {
    if (!this.#ending.signal.aborted) {
      const spawned = await spawnDriver(this.#options);
      if (spawned.kind === 'spawned') await this.#follow(spawned.process);
      else this.#events.lost(spawned, '');
    }
    this.#events.gone();
  }

  /** Asks the driver to end, then insists after `askMs`. */
  terminate(askMs: number): void {
    this.#how = { kind: 'terminate', askMs };
    this.#ending.abort();
  }

  /** Ends the whole group at once. */
  kill(): void {
    this.#how = { kind: 'kill' };
    this.#ending.abort();
  }

  async #follow(process: DriverProcess): Promise<void> {
    const { clock, log, secrets } = this.#options;
    this.#pid = process.pid;
    this.#mask = maskOf([...secrets, process.token]);
    faultPoint('host.driver.spawned');
    const output = drain(process, new DriverLog({ log, clock, mask: this.#mask }));
    const over = new AbortController();
    const sampling = this.#keepSampling(over.signal);

    const { fault, connection } = await this.#untilFault(process, output);
    if (fault !== null) {
      if (fault.kind === 'exited') await output.endedWithin(clock, LAST_WORDS_MS);
      this.#events.lost(fault, output.log.stderrTail());
    }
    await this.#finish(process, connection);
    over.abort();
    await sampling;
    this.#pid = null; // The number may belong to another process from here on.
    connection?.close();
    await output.endedWithin(clock, LAST_WORDS_MS);
    output.log.end();
    await process.clearAway();
  }

  /** Starting and running. Ends with a fault, or without one when the end was asked for. */
  async #untilFault(
    process: DriverProcess,
    output: Output,
  ): Promise<{ fault: Fault | null; connection: DriverConnection | null }> {
    const over = new AbortController();
    const exited = (wasReady: boolean) => process.exited.then((exit): Fault => ({ kind: 'exited', exit, wasReady }));
    const asked = aborted(this.#ending.signal);
    try {
      const started = await Promise.race([exited(false), asked, this.#start(process, output, over.signal)]);
      if (started === null || 'kind' in started) return { fault: started, connection: null };
      const { endpoint, connection } = started;
      await process.folder.forgetConfig();
      if (this.#ending.signal.aborted) return { fault: null, connection };
      faultPoint('host.driver.ready');
      this.#events.ready({ endpoint, token: process.token, pid: process.pid });
      const fault = await Promise.race([exited(true), asked, this.#untilDead(connection, over.signal)]);
      return { fault, connection };
    } finally {
      over.abort();
    }
  }

  async #start(
    process: DriverProcess,
    output: Output,
    signal: AbortSignal,
  ): Promise<Fault | { endpoint: string; connection: DriverConnection }> {
    const { readyMs, transport, clock, log } = this.#options;
    const line = await Promise.race([output.firstLine, pause(clock, readyMs, signal)]);
    if (typeof line === 'string') return { kind: 'not-ready', readyMs };
    const readiness = line.kind === 'line' ? readReadiness(line.text, transport) : null;
    if (readiness?.kind !== 'ready') {
      if (line.kind === 'line') log.info(this.#mask(line.text), { stream: 'stdout' });
      // A driver that fails says so on stdout and then exits: its exit code tells more.
      await pause(clock, LAST_WORDS_MS, signal);
      return { kind: 'bad-readiness', problem: this.#refusal(line) };
    }
    const endpoint = readiness.port === null ? `unix:${process.folder.socketPath}` : `127.0.0.1:${readiness.port}`;
    return this.#handshake(endpoint, process.token, signal);
  }

  /** What is wrong with the first line. Masked before it is quoted: a quote may end inside a secret. */
  #refusal(line: FirstLine): string {
    if (line.kind !== 'line') return noLine(line);
    const told = readReadiness(this.#mask(line.text), this.#options.transport);
    return told.kind === 'refused' ? told.problem : 'its readiness line holds a secret where a number was expected';
  }

  async #handshake(
    endpoint: string,
    token: string,
    signal: AbortSignal,
  ): Promise<Fault | { endpoint: string; connection: DriverConnection }> {
    const { connect, clock } = this.#options;
    const connecting = Promise.resolve().then(() => connect(endpoint, token, this.#mask));
    try {
      const connection = await Promise.race([connecting, pause(clock, HANDSHAKE_MS_MAX, signal)]);
      if (typeof connection !== 'string') return { endpoint, connection };
    } catch (cause) {
      return { kind: 'handshake', cause };
    }
    // Nobody waits for it any more: should it come, it is closed.
    void connecting.then(
      (late) => late.close(),
      () => {},
    );
    return { kind: 'handshake', cause: new Error(`no answer within ${HANDSHAKE_MS_MAX / 1_000} s`) };
  }

  async #untilDead(connection: DriverConnection, signal: AbortSignal): Promise<Fault | null> {
    const { heartbeat, clock } = this.#options;
    const beat = async (call: AbortSignal) => connection.heartbeat(call);
    const verdict = await watchHeartbeat({ ...heartbeat, beat, clock, signal });
    return verdict.kind === 'stopped' ? null : verdict;
  }

  async #finish({ group, exited }: DriverProcess, connection: DriverConnection | null): Promise<void> {
    const { clock, stopMs, log } = this.#options;
    const onStep = (step: 'SIGTERM' | 'SIGKILL' | 'stuck') => {
      if (step === 'stuck') log.error('driver does not end even by SIGKILL; waiting for the system to let it go');
      else if (step === 'SIGTERM' && connection === null)
        log.debug('driver is sent SIGTERM, for there is no connection to ask on');
      else if (step === 'SIGTERM' && this.#how.kind === 'terminate' && this.#how.askMs === 0)
        log.warn('driver is sent SIGTERM, for the last commits took all the time of the stop');
      else log.warn(`driver did not end when asked and is sent ${step}`);
    };
    void this.usage; // A last look while it is there.
    if (this.#how.kind === 'kill') return killGroup({ group, clock, stopMs, onStep });
    const shutdown =
      connection === null
        ? null
        : async (signal: AbortSignal) => {
            await connection.shutdown(signal);
            void this.usage;
          };
    await terminate({ group, leaderExited: exited, shutdown, askMs: this.#how.askMs, stopMs, clock, onStep });
  }

  async #keepSampling(signal: AbortSignal): Promise<void> {
    do void this.usage;
    while ((await pause(this.#options.clock, USAGE_EVERY_MS, signal)) === 'over');
  }
}

interface Output {
  readonly firstLine: Promise<FirstLine>;
  readonly log: DriverLog;
  endedWithin(clock: Clock, ms: number): Promise<void>;
}

/** Reads both pipes for life: one that is not read stops the driver when it is full. */
function drain({ stdout, stderr }: DriverProcess, log: DriverLog): Output {
  const firstLine = takeFirstLine(stdout, (chunk) => log.stdout(chunk));
  stderr.on('data', (chunk: Buffer) => log.stderr(chunk));
  const closed = [stdout, stderr].map(
    (stream) =>
      new Promise<void>((resolve) => {
        stream.once('close', resolve);
        stream.on('error', () => {}); // 'close' follows.
      }),
  );
  const ended = Promise.all(closed);
  return {
    firstLine,
    log,
    async endedWithin(clock, ms) {
      const over = new AbortController();
      await Promise.race([ended, pause(clock, ms, over.signal)]);
      over.abort();
    },
  };
}

function noLine({ kind }: FirstLine): string {
  return kind === 'too-long'
    ? `its first line on stdout is longer than ${LIMIT.readinessLineBytesMax} bytes`
    : 'it closed its stdout without a readiness line';
}

function aborted(signal: AbortSignal): Promise<null> {
  if (signal.aborted) return Promise.resolve(null);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
}

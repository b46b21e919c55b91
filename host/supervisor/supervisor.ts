import { LIMIT, UrutauError } from '@urutau/contract';
import { secretsOf } from '../driver-packages/config-schema.ts';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import type { Log } from '../observe/log.ts';
import { type Clock, systemClock } from './clock.ts';
import { type Diagnosis, diagnose, type Fault } from './diagnose.ts';
import { type DriverConnection, DriverRun } from './driver-run.ts';
import { type FailureCounts, type FailureReason, failureReason, NO_FAILURES } from './failure-reason.ts';
import type { Mask } from './mask.ts';
import type { Transport } from './readiness.ts';
import { sweepDeadHosts } from './spawn.ts';
import { type DriverEvent, type DriverState, type Effect, next, type Policy, STOPPED } from './state.ts';
import { NO_USAGE, type Usage } from './usage.ts';

export type { DriverConnection } from './driver-run.ts';

/** The `supervision` block of the pipeline file, with its defaults filled in. */
export interface SupervisionSettings {
  readonly heartbeatMs: number;
  readonly misses: number;
  readonly readyMs: number;
  /** How long the shutdown action has, and then SIGTERM. */
  readonly stopMs: number;
  readonly backoff: { readonly firstMs: number; readonly maxMs: number };
  readonly breaker: {
    readonly failures: number;
    readonly windowMs: number;
    readonly holdMs: number;
    readonly then: 'hold' | 'exit';
  };
}

export interface SupervisorOptions {
  readonly role: 'source' | 'sink';
  readonly driver: DriverPackage;
  /** The config with its secrets revealed; asked for at every start. */
  readonly config: () => unknown;
  /** Texts that must not get through from what the driver says, beside those that its config schema marks. */
  readonly secrets?: () => readonly string[];
  readonly settings: SupervisionSettings;
  /** Connects and does the handshake; a failure is a failed start. `mask` takes secrets out of what the driver says. */
  readonly connect: (endpoint: string, token: string, mask: Mask) => Promise<DriverConnection>;
  readonly log: Log;
  /** In [0, 1). */
  readonly random?: () => number;
  readonly clock?: Clock;
  readonly transport?: Transport;
  /** Called after every change of state; must not throw. */
  readonly onChange?: (status: SupervisorStatus) => void;
  /** False for a sink whose writes are not idempotent: a failure is then for good. Default: what the manifest says. */
  readonly restartable?: boolean;
}

/** A driver that lives and has shaken hands. */
export interface RunningDriver {
  /** `unix:/path` or `127.0.0.1:port`; dead with this process, never to be connected to again. */
  readonly endpoint: string;
  readonly token: string;
  readonly pid: number;
  /** Resolves, never rejects, when this process may be used no longer. */
  readonly died: Promise<DriverDeath>;
  /** Aborts at the same time, with the death's error as its reason. */
  readonly diedSignal: AbortSignal;
}

export interface DriverDeath {
  /** `restart` and `stop` were asked for. */
  readonly kind: 'failure' | 'restart' | 'stop';
  readonly error: UrutauError;
}

export interface SupervisorStatus {
  readonly state: DriverState['kind'];
  /** Of the state: milliseconds since 1970. */
  readonly sinceMs: number;
  readonly pid: number | null;
  /** Starts after the first. */
  readonly restarts: number;
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** When the next start is due, while one is waited for; milliseconds since 1970. */
  readonly nextStartAtMs: number | null;
  readonly lastFailure: { readonly atMs: number; readonly message: string; readonly remedy: string } | null;
  /** What the breaker counts, or what opened it and kept it open; the oldest first, and the newest ten at most. */
  readonly failures: readonly CountedFailure[];
  /** Since the supervisor was made. */
  readonly failuresByReason: FailureCounts;
}

export interface CountedFailure {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly reason: FailureReason;
  readonly message: string;
}

/** After so long, a driver that is ready is taken to run well: backoff begins again at its first step. */
const WELL_MS = 60_000;
const HOLD_MS_MAX = 600_000;
const FAILURES_SHOWN_MAX = 10;

/** Keeps one driver alive. state.ts decides; this performs. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #policy: Policy;
  #state: DriverState = STOPPED;
  #sinceMs: number;
  #run: DriverRun | null = null;
  #starts = 0;
  #everReady = false;
  #running: LivingDriver | null = null;
  #endpoint: { endpoint: string; token: string; pid: number } | null = null;
  #lastFailure: { atMs: number; diagnosis: Diagnosis } | null = null;
  #failures: readonly CountedFailure[] = [];
  #failuresByReason = NO_FAILURES;
  #askedFor: { kind: 'restart' | 'stop'; reason: string } | null = null;
  /** How long the shutdown action has when the driver is ended. */
  #askMs: number;
  #usage: Usage = NO_USAGE;
  #cancelTimer: (() => void) | null = null;
  readonly #waiting = new Set<Waiter>();
  readonly #stopping = new Set<() => void>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#sinceMs = this.#clock.wallMs();
    const { manifest } = options.driver;
    this.#log = options.log.child({ role: options.role, driver: manifest.name });
    const { backoff, breaker, stopMs } = options.settings;
    this.#askMs = stopMs;
    const restartable = options.restartable ?? !(options.role === 'sink' && !manifest.capabilities.idempotentWrite);
    this.#policy = {
      restartable,
      backoff,
      breaker: { ...breaker, holdMsMax: Math.max(HOLD_MS_MAX, breaker.holdMs) },
      wellMs: WELL_MS,
    };
  }

  /** Starts the driver; does nothing unless it is stopped. */
  start(): void {
    if (this.#state.kind === 'stopped') {
      this.#starts = 0;
      this.#askMs = this.#options.settings.stopMs;
    }
    this.#dispatch({ kind: 'start', nowMs: this.#clock.nowMs() });
  }

  /** The living driver, or after a death the next one. Rejects when it has failed for good, was stopped, or `signal` aborts. */
  ready(signal: AbortSignal): Promise<RunningDriver> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#running !== null) return Promise.resolve(this.#running);
    if (this.#state.kind === 'failed') return Promise.reject(this.#failure());
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#waiting.delete(waiter);
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = () => waiter.reject(signal.reason);
      const waiter: Waiter = {
        resolve(driver) {
          settle();
          resolve(driver);
        },
        reject(reason) {
          settle();
          reject(reason);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiter);
    });
  }

  /** Ends the driver in order and starts it again; counts as no failure. Does nothing while a start is under way or due. */
  restart(reason: string): void {
    if (this.#state.kind !== 'ready') return;
    this.#log.info('driver is restarted', { reason });
    this.#askedFor = { kind: 'restart', reason };
    this.#dispatch({ kind: 'restart', nowMs: this.#clock.nowMs() });
  }

  /**
   * A person closes the breaker: no failure counts any more, and a start that is held back happens now. Rejects with
   * `precondition-failed` when no start can come of it.
   */
  reset(): void {
    const { kind } = this.#state;
    const ends = this.#state.kind === 'stopping' && this.#state.afterwards.kind === 'stop';
    if (kind === 'failed' || kind === 'stopped' || ends) {
      throw new UrutauError('precondition-failed', `${this.#name} is ${kind}, and this host does not start it again`, {
        remedy: 'Start `urutau-host run` again once it has ended.',
      });
    }
    this.#log.info('breaker is closed by hand', { breaker: this.#state.history.breaker.kind, state: kind });
    this.#failures = [];
    this.#dispatch({ kind: 'reset', nowMs: this.#clock.nowMs() });
  }

  /**
   * Shutdown action, SIGTERM, SIGKILL. Resolves when nothing of the driver is left; may be called again. `askMs` is what the
   * shutdown action has, where that is not the whole `stopMs`.
   */
  stop(askMs = this.#options.settings.stopMs): Promise<void> {
    this.#askMs = askMs;
    this.#askedFor = { kind: 'stop', reason: 'the host stops it' };
    const stopped = new Promise<void>((resolve) => this.#stopping.add(resolve));
    this.#dispatch({ kind: 'stop', nowMs: this.#clock.nowMs() });
    return stopped;
  }

  get status(): SupervisorStatus {
    const { kind, history } = this.#state;
    const wallOffsetMs = this.#clock.wallMs() - this.#clock.nowMs();
    return {
      state: kind,
      sinceMs: this.#sinceMs,
      pid: this.#run?.pid ?? null,
      restarts: Math.max(0, this.#starts - 1),
      breaker: history.breaker.kind,
      nextStartAtMs: 'untilMs' in this.#state ? Math.round(this.#state.untilMs + wallOffsetMs) : null,
      lastFailure:
        this.#lastFailure === null
          ? null
          : {
              atMs: this.#lastFailure.atMs,
              message: this.#lastFailure.diagnosis.error.message,
              remedy: this.#lastFailure.diagnosis.error.remedy,
            },
      failures: this.#countedFailures(),
      failuresByReason: this.#failuresByReason,
    };
  }

  /** Of all processes so far: CPU added up, memory as the highest peak. Zero where the system has no /proc. */
  resources(): Usage {
    return this.#run === null ? this.#usage : added(this.#usage, this.#run.usage);
  }

  #dispatch(event: DriverEvent): void {
    const before = this.#state;
    const [state, ...effects] = next(before, event, this.#policy);
    this.#state = state;
    if (state.history.breaker.kind === 'closed' && before.history.breaker.kind !== 'closed') this.#failures = [];
    if (state.kind !== before.kind) {
      this.#sinceMs = this.#clock.wallMs();
      this.#report(state);
    }
    for (const effect of effects) this.#perform(effect);
    if (state.kind === 'failed') this.#settle(this.#failure());
    if (state.kind === 'stopped') this.#settle(new DOMException(`${this.#name} was stopped`, 'AbortError'));
    if (state !== before) this.#options.onChange?.(this.status);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'spawn':
        this.#spawn();
        break;
      case 'publish':
        this.#publish();
        break;
      case 'withdraw':
        this.#withdraw();
        break;
      case 'terminate':
        this.#run?.terminate(this.#askMs);
        break;
      case 'kill':
        this.#run?.kill();
        break;
      case 'arm':
        this.#cancelTimer = this.#clock.after(effect.ms, () =>
          this.#dispatch({ kind: 'timer', nowMs: this.#clock.nowMs() }),
        );
        break;
      case 'disarm':
        this.#cancelTimer?.();
        break;
    }
  }

  #spawn(): void {
    const { role, driver, config, connect, settings, random = Math.random, transport = 'unix' } = this.#options;
    const plain = config();
    this.#askedFor = null;
    this.#starts++;
    const run = new DriverRun(
      {
        role,
        driver,
        config: plain,
        transport,
        isFirst: this.#starts === 1,
        connect,
        readyMs: settings.readyMs,
        stopMs: settings.stopMs,
        heartbeat: {
          everyMs: settings.heartbeatMs,
          answerMs: Math.min(LIMIT.heartbeatAnswerMs, settings.heartbeatMs),
          misses: settings.misses,
        },
        clock: this.#clock,
        log: this.#log,
        secrets: [...secretsOf(driver.configSchema, plain), ...(this.#options.secrets?.() ?? [])],
      },
      {
        ready: (endpoint) => {
          this.#endpoint = endpoint;
          this.#everReady = true;
          this.#dispatch({ kind: 'ready', nowMs: this.#clock.nowMs() });
        },
        lost: (fault, stderr) => this.#lost(fault, stderr),
        gone: () => {
          this.#usage = added(this.#usage, run.usage);
          this.#run = null;
          this.#dispatch({ kind: 'gone', nowMs: this.#clock.nowMs(), random: random() });
        },
      },
    );
    this.#run = run;
    const swept = this.#starts === 1 ? sweepDeadHosts() : Promise.resolve();
    // Held by its events: stop() resolves at `gone`.
    void swept.then(() => run.live());
  }

  #lost(fault: Fault, stderr: string): void {
    const diagnosis = diagnose(fault, { driver: this.#name, stderr, ranBefore: this.#everReady });
    this.#lastFailure = { atMs: this.#clock.wallMs(), diagnosis };
    this.#count(failureReason(fault), diagnosis.error.message);
    this.#dispatch({ kind: 'lost', nowMs: this.#clock.nowMs(), final: diagnosis.final });
  }

  #count(reason: FailureReason, message: string): void {
    const failure = { atMs: this.#clock.wallMs(), reason, message };
    this.#failures = [...this.#countedFailures(), failure].slice(-FAILURES_SHOWN_MAX);
    this.#failuresByReason = { ...this.#failuresByReason, [reason]: this.#failuresByReason[reason] + 1 };
  }

  #countedFailures(): readonly CountedFailure[] {
    if (this.#state.history.breaker.kind !== 'closed') return this.#failures;
    const sinceMs = this.#clock.wallMs() - this.#policy.breaker.windowMs;
    return this.#failures.filter(({ atMs }) => atMs >= sinceMs);
  }

  #publish(): void {
    this.#running = new LivingDriver(this.#endpoint!);
    for (const waiter of [...this.#waiting]) waiter.resolve(this.#running);
  }

  #withdraw(): void {
    const asked = this.#askedFor;
    const death: DriverDeath =
      asked === null
        ? { kind: 'failure', error: this.#lastFailure!.diagnosis.error }
        : {
            kind: asked.kind,
            error: new UrutauError('internal', `${this.#name} was ended: ${asked.reason}`, {
              remedy: 'Nothing: this was asked for.',
            }),
          };
    this.#running?.die(death);
    this.#running = null;
  }

  #settle(reason: unknown): void {
    for (const waiter of [...this.#waiting]) waiter.reject(reason);
    for (const resolve of this.#stopping) resolve();
    this.#stopping.clear();
  }

  #report(state: DriverState): void {
    switch (state.kind) {
      case 'starting':
        this.#log.info('driver starts', { start: this.#starts + 1 });
        break;
      case 'ready':
        this.#log.info('driver ready', { pid: this.#run?.pid });
        break;
      case 'stopping':
        this.#log.debug('driver is ended', { afterwards: state.afterwards.kind });
        break;
      case 'backing-off':
      case 'held': {
        const inMs = Math.round(state.untilMs - this.#clock.nowMs());
        const msg =
          state.kind === 'held'
            ? 'driver failed too often; starts are held back'
            : 'driver failed and is started again';
        const endBy = state.kind === 'held' ? { endBy: `urutau-host driver reset ${this.#options.role}` } : {};
        this.#log.warn(msg, { inMs, ...this.#problem(), ...endBy });
        break;
      }
      case 'failed':
        this.#log.error('driver failed for good', { because: state.because, ...this.#problem() });
        break;
      case 'stopped':
        this.#log.info('driver stopped');
        break;
    }
  }

  #problem(): { problem?: string; remedy?: string } {
    const error = this.#lastFailure?.diagnosis.error;
    return error === undefined ? {} : { problem: error.message, remedy: error.remedy };
  }

  #failure(): UrutauError {
    const { error } = this.#lastFailure!.diagnosis;
    if (this.#state.kind !== 'failed') return error;
    const { code, message, remedy } = error;
    switch (this.#state.because) {
      case 'final':
        return error;
      case 'not-restartable':
        return new UrutauError(code, `${message}; it is not started again because its writes are not idempotent`, {
          cause: error,
          remedy,
        });
      case 'breaker':
        return new UrutauError(
          code,
          `${this.#name} failed ${this.#policy.breaker.failures} times within ${this.#policy.breaker.windowMs / 1_000} s; the last time: ${message}`,
          {
            cause: error,
            remedy,
          },
        );
    }
  }

  get #name(): string {
    return `${this.#options.role} driver ${this.#options.driver.manifest.name}`;
  }
}

interface Waiter {
  resolve(driver: RunningDriver): void;
  reject(reason: unknown): void;
}

class LivingDriver implements RunningDriver {
  readonly endpoint: string;
  readonly token: string;
  readonly pid: number;
  readonly died: Promise<DriverDeath>;
  readonly #death = new AbortController();
  readonly #resolve: (death: DriverDeath) => void;

  constructor({ endpoint, token, pid }: { endpoint: string; token: string; pid: number }) {
    this.endpoint = endpoint;
    this.token = token;
    this.pid = pid;
    let resolveDeath: (death: DriverDeath) => void = () => {};
    this.died = new Promise((resolve) => {
      resolveDeath = resolve;
    });
    this.#resolve = resolveDeath;
  }

  get diedSignal(): AbortSignal {
    return this.#death.signal;
  }

  die(death: DriverDeath): void {
    this.#resolve(death);
    this.#death.abort(death.error);
  }
}

function added(a: Usage, b: Usage): Usage {
  return { cpuSeconds: a.cpuSeconds + b.cpuSeconds, peakMemoryBytes: Math.max(a.peakMemoryBytes, b.peakMemoryBytes) };
}

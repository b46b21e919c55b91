import { ACTION, asUrutauError, UrutauError } from '@urutau/contract';
import type { CheckpointStore } from '../checkpoint/store.ts';
import { faultPoint } from '../fault-point.ts';
import { FlightClient } from '../flight/client.ts';
import type { Log } from '../observe/log.ts';
import { backoffMs } from '../supervisor/backoff.ts';
import { pause, systemClock } from '../supervisor/clock.ts';
import type { DriverConnection, RunningDriver, Supervisor, SupervisorOptions } from '../supervisor/supervisor.ts';
import { type Replayed, replay } from './quarantine/replay.ts';
import { type ReadBack, Replays } from './quarantine/replays.ts';
import { isRefusal } from './refusal.ts';
import { runSession, type SessionEnd, type SessionHandle } from './session.ts';
import { openSink } from './sink/sink.ts';
import { openSource } from './source/source.ts';
import { type PipelineStatus, statusOf } from './status.ts';
import { doneWithin, StopBudget } from './stop-budget.ts';
import type { TableEvent } from './table/state.ts';
import { reasonOf, Table, type TableSettings } from './table/table.ts';
import { unlessDied, whyEnded } from './why-ended.ts';

export interface PipelineOptions {
  name: string;
  /** Random, one per run of the host. */
  run: string;
  tables: readonly TableSettings[];
  snapshotMode: 'initial' | 'none';
  flush: { rows: number; bytes: number; intervalMs: number };
  windowBytes: number;
  /** The table of dead letters, by its full name in the destination. */
  deadLetters: string;
  /** Starts a driver that reads the destination back; null where the sink has none. */
  readBack: ReadBack | null;
  /** What the last commits and the shutdown of the drivers have together, and then SIGTERM once more. */
  stopMs: number;
  /** End by itself once everything is in the destination. */
  untilCaughtUp: boolean;
  /** Makes a supervisor that connects through `connect`; the pipeline starts and stops it. */
  supervisor: (role: 'source' | 'sink', connect: Connect) => Supervisor;
  store: () => CheckpointStore;
  log: Log;
  /** Monotonic. */
  nowMs: () => number;
  wallMs: () => number;
  random: () => number;
  /** A plan for a table, before it is carried out. */
  announced: (table: string, plan: string) => void;
  /** Called for every commit with its duration. */
  committed?: (millis: number) => void;
}

type Connect = SupervisorOptions['connect'];

/** How a run ended. `failed`: it could not go on; `error` says why. */
export type PipelineOutcome = { kind: 'stopped' } | { kind: 'caught-up' } | { kind: 'failed'; error: UrutauError };

/** A session that lived for so long went well: delays begin again at their first step. */
const WELL_MS = 10_000;
const DELAY = { firstMs: 500, maxMs: 30_000 };
/** One table may begin the session anew so often within the time; then it pauses, and the others go on. */
const RESTARTS_MAX = 5;
const RESTARTS_WITHIN_MS = 300_000;
/** Code of the pause in which dead letters are applied. */
const REPLAYING = 'replaying';
/** After SIGKILL, for the system to let go and the session to notice. */
const LET_GO_MS = 1_000;

/** One pipeline: two supervised drivers, and one session after the other while both live. */
export class Pipeline {
  readonly tables: readonly Table[];
  readonly #options: PipelineOptions;
  readonly #source: Supervisor;
  readonly #sink: Supervisor;
  readonly #clients = new Map<string, FlightClient>();
  readonly #restarts = new Map<Table, number[]>();
  readonly #replays: Replays;
  readonly #startedMs: number;
  #session: SessionHandle | null = null;
  #sessions = 0;
  #sourceName = '';
  #stop = new AbortController().signal;
  #again = new AbortController();
  #fatal: UrutauError | null = null;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#startedMs = options.wallMs();
    const { name: pipeline, run, deadLetters: target, store, log } = options;
    this.#replays = new Replays({
      pipeline,
      run,
      target,
      store,
      log,
      sinkClient: async () => this.#clientOf(await this.#sink.ready(this.#stop)),
      sourceName: () => this.#sourceName,
      stop: () => this.#stop,
    });
    this.tables = options.tables.map((settings) => new Table(settings, (table) => this.#report(table)));
    this.#source = options.supervisor('source', (...where) => this.#connect('source', ...where));
    this.#sink = options.supervisor('sink', (...where) => this.#connect('sink', ...where));
  }

  /**
   * Runs until `stop` aborts, everything is caught up (where asked), or it cannot go on. Both drivers are gone then. Once
   * `stop` aborts it takes at most twice `stopMs` and a second, whatever the drivers do.
   */
  async run(stop: AbortSignal): Promise<PipelineOutcome> {
    this.#stop = stop;
    const { stopMs, log } = this.#options;
    const budget = new StopBudget(stop, stopMs, systemClock);
    this.#source.start();
    this.#sink.start();
    const ended = this.#sessionsUntil(stop).catch(
      (error): PipelineOutcome =>
        stop.aborted ? { kind: 'stopped' } : { kind: 'failed', error: asUrutauError(error) },
    );
    const outcome = await Promise.race([ended, budget.spent]);
    if (!outcome) log.warn('the last commits took too long and are given up: the next run reads their rows again');
    faultPoint('host.drained');
    const askMs = budget.leftMs;
    // A session ends with its drivers: every call that it waits for breaks.
    const over = Promise.all([ended, this.#source.stop(askMs), this.#sink.stop(askMs)]).then(() => this.#replays.over);
    if (!(await doneWithin(over, askMs + stopMs + LET_GO_MS, systemClock))) {
      log.error('a driver does not end even by SIGKILL and is left to the system');
    }
    faultPoint('host.drivers.ended');
    return outcome ?? { kind: 'stopped' };
  }

  /** Ready: both drivers live and a session carries the tables. */
  get ready(): boolean {
    return this.#session !== null;
  }

  async pause(name: string, message = 'paused by hand'): Promise<void> {
    const table = this.#tableAtHand(name);
    const remedy = `urutau-host table resume ${name}`;
    await this.#perform(table, { kind: 'pause', reason: { by: 'user', code: 'paused', message, remedy } });
  }

  async resume(name: string): Promise<void> {
    const table = this.#tableAtHand(name);
    const { state } = table;
    table.acceptNextShape = state.kind === 'paused' && state.reason.code === 'schema-changed';
    this.#beginAfresh(table);
    await this.#perform(table, { kind: 'resume' });
  }

  async resync(name: string, { discardHistory = false } = {}): Promise<void> {
    const table = this.#tableAtHand(name);
    if (table.settings.writeMode !== 'upsert' && !discardHistory) {
      throw new UrutauError(
        'config-invalid',
        `resync of ${name} would erase its history, for its writeMode is ${table.settings.writeMode}`,
        {
          table: name,
          remedy: 'Add --discard-history if that is what you want.',
        },
      );
    }
    table.resyncAsked = true;
    this.#beginAfresh(table);
    await this.#perform(table, { kind: 'resync' });
  }

  /** Commits soon what has come of a table: somebody waits for the destination to get as far. */
  async commit(name: string): Promise<void> {
    await this.#session?.commit(this.#table(name));
  }

  /** A person has mended a driver: its breaker closes, and a start that is held back happens now. */
  resetDriver(role: 'source' | 'sink'): void {
    (role === 'source' ? this.#source : this.#sink).reset();
  }

  /**
   * Pauses the table, applies its dead letters, and goes on with it, unless a person had paused it. Cut short at any
   * moment it can be asked for again.
   */
  async replay(name: string): Promise<Replayed> {
    const table = this.#tableAtHand(name);
    const { readBack } = this.#options;
    if (readBack === null) throw cannotReplay(table);
    const { state } = table;
    const before = state.kind === 'paused' ? state.reason : null;
    const message = 'its dead letters are applied';
    const remedy = 'wait until that has ended';
    await this.#perform(table, { kind: 'pause', reason: { by: 'user', code: REPLAYING, message, remedy } });
    let staysPaused = before;
    try {
      const replayed = await this.#replays.inTurn(readBack, table, replay);
      this.#options.log.info('dead letters applied', { table: table.name, ...replayed });
      if (before?.by === 'fault') staysPaused = null;
      return replayed;
    } finally {
      await this.#perform(table, staysPaused ? { kind: 'pause', reason: staysPaused } : { kind: 'resume' });
    }
  }

  status(): PipelineStatus {
    const { name, run, wallMs } = this.#options;
    return {
      pipeline: name,
      run,
      startedAt: new Date(this.#startedMs).toISOString(),
      uptimeSec: Math.floor((wallMs() - this.#startedMs) / 1000),
      sessions: this.#sessions,
      source: this.#source.status,
      sink: this.#sink.status,
      windowBytes: this.#session?.window.bytes ?? 0,
      tables: this.tables.map(statusOf),
    };
  }

  /** CPU and peak memory of the drivers' processes so far. */
  resources(): { source: ReturnType<Supervisor['resources']>; sink: ReturnType<Supervisor['resources']> } {
    return { source: this.#source.resources(), sink: this.#sink.resources() };
  }

  /** The living clients, for questions beside the data: metrics, teardown. */
  get clients(): readonly FlightClient[] {
    return [...this.#clients.values()];
  }

  async #sessionsUntil(stop: AbortSignal): Promise<PipelineOutcome> {
    const { nowMs, log } = this.#options;
    for (let failures = 0; ; ) {
      if (stop.aborted) return { kind: 'stopped' };
      const [source, sink] = await Promise.all([this.#source.ready(stop), this.#sink.ready(stop)]);
      const beganMs = nowMs();
      const end = await unlessDied(await this.#oneSession(source, sink, stop), source, sink, stop);
      if (this.#fatal) return { kind: 'failed', error: this.#fatal };
      if (end.kind !== 'again') return end;
      if (end.error === null) log.info('session begins anew', { why: end.why });
      else log.warn('session begins anew', { why: end.why, code: end.error.code, remedy: end.error.remedy });
      if (end.table && end.error) this.#countRestart(end.table, end.error);
      failures = end.error === null || nowMs() - beganMs > WELL_MS ? 0 : failures + 1;
      if (failures > 0) {
        const delayMs = backoffMs(failures, DELAY, this.#options.random());
        await pause(systemClock, delayMs, AbortSignal.any([stop, this.#again.signal]));
      }
    }
  }

  async #oneSession(source: RunningDriver, sink: RunningDriver, stop: AbortSignal): Promise<SessionEnd> {
    const { name, store, announced, readBack, committed = () => {} } = this.#options;
    this.#again = new AbortController();
    const signal = AbortSignal.any([stop, source.diedSignal, sink.diedSignal, this.#again.signal]);
    this.#sessions++;
    try {
      const ports = {
        source: await openSource(this.#clientOf(source), signal),
        sink: await openSink(this.#clientOf(sink), name, store, signal),
      };
      this.#sourceName = ports.source.name;
      for (const [role, port] of Object.entries(ports)) refuseTooManyTables(role, port.streamsMax, this.tables.length);
      const end = await runSession(
        {
          ...this.#options,
          ...ports,
          tables: this.tables,
          writer: name,
          faulted: (table, error) => this.#faulted(table, error),
          announced: (table, plan) => announced(table.name, plan),
          committed,
          deadLetters: this.#replays.boxOf(this.#clientOf(sink), ports.sink),
          lettersVoid: (table, before) => {
            if (readBack !== null) this.#replays.removeSoon(readBack, table, before);
          },
          opened: (handle) => {
            this.#session = handle;
          },
        },
        signal,
      );
      if (end.kind !== 'stopped' || stop.aborted) return end;
      return { kind: 'again', why: whyEnded(source, sink), table: null, error: null };
    } catch (error) {
      if (stop.aborted) return { kind: 'stopped' };
      if (signal.aborted) return { kind: 'again', why: whyEnded(source, sink), table: null, error: null };
      const urutau = asUrutauError(error);
      if (urutau.retry === 'never') throw urutau;
      return { kind: 'again', why: urutau.message, table: null, error: urutau };
    } finally {
      this.#session = null;
    }
  }

  #faulted(table: Table, error: UrutauError): void {
    const { log } = this.#options;
    const { code, message, remedy, context } = error;
    log.error('table paused', {
      table: table.name,
      code,
      reason: message,
      remedy,
      ...(context.key === undefined ? {} : { key: context.key }),
    });
    table.apply({ kind: 'fault', reason: reasonOf(error) });
    if (table.settings.onPoison === 'stop' && isRefusal(error)) this.#end(error);
    // The other run needs the slot, and whatever else a source lends to one reader only.
    if (code === 'superseded' && this.tables.every(isSuperseded)) this.#end(error);
  }

  #end(error: UrutauError): void {
    this.#fatal = error;
    this.#again.abort();
  }

  /** A table that begins the session anew again and again holds up all others: it pauses. */
  #countRestart(table: Table, error: UrutauError): void {
    if (error.retry === 'backoff') return;
    const nowMs = this.#options.nowMs();
    const recent = [...(this.#restarts.get(table) ?? []), nowMs].filter((atMs) => nowMs - atMs < RESTARTS_WITHIN_MS);
    this.#restarts.set(table, recent);
    if (recent.length > RESTARTS_MAX) this.#faulted(table, error);
  }

  async #perform(table: Table, event: TableEvent): Promise<void> {
    for (const effect of table.apply(event)) {
      if (effect === 'begin-session-anew') this.#again.abort();
      else await this.#session?.stop(table);
    }
  }

  /** A person has looked at it. What it did before does not count, and where it had been taken over the other run is gone. */
  #beginAfresh(table: Table): void {
    this.#restarts.delete(table);
    if (!isSuperseded(table)) return;
    table.checkpoint = null;
    this.#replays.claimAnew();
  }

  /** One that nothing else is being done with: a replay counts on it that nobody carries its table. */
  #tableAtHand(name: string): Table {
    const table = this.#table(name);
    if (table.state.kind === 'paused' && table.state.reason.code === REPLAYING) throw isReplaying(table);
    return table;
  }

  #table(name: string): Table {
    const table = this.tables.find(({ settings }) => settings.source === name || settings.target === name);
    if (table) return table;
    throw new UrutauError('table-not-found', `this pipeline has no table ${name}`, {
      remedy: `It has: ${this.tables.map((known) => known.name).join(', ')}.`,
    });
  }

  #report(table: Table): void {
    const { state, name } = table;
    const { log } = this.#options;
    if (state.kind !== 'paused') log.info(`table is ${state.kind}`, { table: name });
    else if (state.reason.code === REPLAYING)
      log.info('table paused while its dead letters are applied', { table: name });
    else if (state.reason.by === 'user') log.info('table paused by hand', { table: name });
  }

  async #connect(role: 'source' | 'sink', ...where: Parameters<Connect>): Promise<DriverConnection> {
    const [endpoint] = where;
    const client = await FlightClient.connect(role, ...where);
    this.#clients.set(endpoint, client);
    return {
      heartbeat: (signal) => client.heartbeat(signal),
      shutdown: async (signal) => void (await client.actionBytes(ACTION.shutdown, undefined, { signal })),
      close: () => {
        this.#clients.delete(endpoint);
        client.close();
      },
    };
  }

  #clientOf({ endpoint }: RunningDriver): FlightClient {
    const client = this.#clients.get(endpoint);
    if (client) return client;
    throw new UrutauError('source-unavailable', 'the driver ended while a session was being opened');
  }
}

function isSuperseded({ state }: Table): boolean {
  return state.kind === 'paused' && state.reason.code === 'superseded';
}

function isReplaying({ name }: Table): UrutauError {
  const remedy = 'Wait until that has ended; `table status` shows when the table runs again.';
  return new UrutauError('precondition-failed', `the dead letters of ${name} are being applied`, { remedy });
}

function cannotReplay({ name }: Table): UrutauError {
  return new UrutauError('config-invalid', `${name} has no dead letters: what this sink wrote cannot be read back`, {
    remedy: 'Of the built-in sinks postgres can be read back.',
  });
}

function refuseTooManyTables(role: string, streamsMax: number | null, tables: number): void {
  if (streamsMax === null || tables <= streamsMax) return;
  const problem = `this ${role} driver takes ${streamsMax} tables at once, and the pipeline has ${tables} (HOST-7)`;
  const remedy = 'Divide the tables over several pipelines, or have the driver describe itself (EXT-1).';
  throw new UrutauError('config-invalid', problem, { remedy });
}

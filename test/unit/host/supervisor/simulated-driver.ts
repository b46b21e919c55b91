import {
  type DriverEvent,
  type DriverState,
  type Effect,
  next,
  type Policy,
  STOPPED,
} from '../../../../host/supervisor/state.ts';
import type { FakeClock } from './fake-clock.ts';

/** One process: when it is ready and when it dies by itself, counted from its spawn. Infinity is never. */
export interface Life {
  readonly readyAfterMs: number;
  readonly diesAfterMs: number;
  /** How long it takes until nothing is left of it, once it is being ended. */
  readonly goneAfterMs?: number;
  /** It refuses its configuration. */
  readonly final?: boolean;
}

/** The state machine with a driver that lives as it is told to, on a clock that is moved. Keeps what came of it. */
export class SimulatedDriver {
  state: DriverState = STOPPED;
  /** When each process was spawned. */
  readonly spawnedAtMs: number[] = [];
  /** Every wait for the next start, in the order in which they began. */
  readonly waits: { kind: 'backing-off' | 'held'; ms: number }[] = [];
  /** What must never be, and was. */
  readonly breaches: string[] = [];
  readonly #clock: FakeClock;
  readonly #policy: Policy;
  readonly #lives: (index: number) => Life;
  readonly #random: () => number;
  #isAlive = false;
  #isPublished = false;
  #cancelTimer: (() => void) | null = null;
  #cancelLife: (() => void)[] = [];

  constructor(
    clock: FakeClock,
    policy: Policy,
    { lives, random = () => 0.5 }: { lives: (index: number) => Life; random?: () => number },
  ) {
    this.#clock = clock;
    this.#policy = policy;
    this.#lives = lives;
    this.#random = random;
  }

  ask(kind: 'start' | 'restart' | 'reset' | 'stop'): void {
    this.#dispatch({ kind, nowMs: this.#clock.nowMs() });
  }

  #dispatch(event: DriverEvent): void {
    const before = this.state;
    const [after, ...effects] = next(before, event, this.#policy);
    this.state = after;
    if ((after.kind === 'backing-off' || after.kind === 'held') && after.kind !== before.kind) {
      this.waits.push({ kind: after.kind, ms: after.untilMs - this.#clock.nowMs() });
    }
    for (const effect of effects) this.#perform(effect);
    if (this.#isPublished !== (after.kind === 'ready')) this.breaches.push(`published while ${after.kind}`);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'spawn':
        this.#spawn();
        break;
      case 'publish':
      case 'withdraw':
        this.#isPublished = effect.kind === 'publish';
        break;
      case 'terminate':
      case 'kill':
        this.#end();
        break;
      case 'arm':
        if (this.#cancelTimer !== null) this.breaches.push('two timers');
        this.#cancelTimer = this.#clock.after(effect.ms, () => {
          this.#cancelTimer = null;
          this.#dispatch({ kind: 'timer', nowMs: this.#clock.nowMs() });
        });
        break;
      case 'disarm':
        this.#cancelTimer?.();
        this.#cancelTimer = null;
        break;
    }
  }

  #spawn(): void {
    if (this.#isAlive) this.breaches.push('a successor beside a process that lives');
    this.#isAlive = true;
    this.spawnedAtMs.push(this.#clock.nowMs());
    const { readyAfterMs, diesAfterMs, final = false } = this.#lives(this.spawnedAtMs.length - 1);
    const at = (ms: number, event: () => DriverEvent) => {
      if (ms < Number.POSITIVE_INFINITY) this.#cancelLife.push(this.#clock.after(ms, () => this.#dispatch(event())));
    };
    if (readyAfterMs < diesAfterMs) at(readyAfterMs, () => ({ kind: 'ready', nowMs: this.#clock.nowMs() }));
    at(diesAfterMs, () => ({ kind: 'lost', nowMs: this.#clock.nowMs(), final }));
  }

  #end(): void {
    for (const cancel of this.#cancelLife.splice(0)) cancel();
    const { goneAfterMs = 1 } = this.#lives(this.spawnedAtMs.length - 1);
    this.#clock.after(goneAfterMs, () => {
      this.#isAlive = false;
      this.#dispatch({ kind: 'gone', nowMs: this.#clock.nowMs(), random: this.#random() });
    });
  }
}

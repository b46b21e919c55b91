import { type BackoffPolicy, backoffMs } from './backoff.ts';
import { afterFailure, afterHold, afterRunningWell, type Breaker, type BreakerPolicy, CLOSED } from './breaker.ts';

/** What outlives one process. */
export interface History {
  readonly failuresInRow: number;
  readonly breaker: Breaker;
}

/** What happens when the group of a process that is being ended is gone. */
export type Afterwards =
  | { readonly kind: 'stop' }
  | { readonly kind: 'start' }
  | { readonly kind: 'judge'; readonly failedAtMs: number; readonly final: boolean };

export type FailedBecause = 'final' | 'not-restartable' | 'breaker';

export type DriverState =
  | { readonly kind: 'stopped'; readonly history: History }
  | { readonly kind: 'starting'; readonly history: History }
  | { readonly kind: 'ready'; readonly history: History }
  | { readonly kind: 'stopping'; readonly history: History; readonly afterwards: Afterwards }
  | { readonly kind: 'backing-off'; readonly history: History; readonly untilMs: number }
  | { readonly kind: 'held'; readonly history: History; readonly untilMs: number }
  | { readonly kind: 'failed'; readonly history: History; readonly because: FailedBecause };

/** `lost` is a failure, of a start or later, never an end that was asked for; `gone` says that no process of the group is left. `random` is in [0, 1). */
export type DriverEvent =
  | { readonly kind: 'start'; readonly nowMs: number }
  | { readonly kind: 'ready'; readonly nowMs: number }
  | { readonly kind: 'lost'; readonly nowMs: number; readonly final: boolean }
  | { readonly kind: 'gone'; readonly nowMs: number; readonly random: number }
  | { readonly kind: 'timer'; readonly nowMs: number }
  | { readonly kind: 'restart'; readonly nowMs: number }
  /** A person has mended what was wrong. */
  | { readonly kind: 'reset'; readonly nowMs: number }
  | { readonly kind: 'stop'; readonly nowMs: number };

export type Effect =
  | { readonly kind: 'spawn' }
  /** The driver may be used. */
  | { readonly kind: 'publish' }
  /** The driver may be used no longer. */
  | { readonly kind: 'withdraw' }
  /** Asks, waits, insists. */
  | { readonly kind: 'terminate' }
  | { readonly kind: 'kill' }
  /** At most one timer runs. */
  | { readonly kind: 'arm'; readonly ms: number }
  | { readonly kind: 'disarm' };

export interface Policy {
  /** False: no start but the first, and those that were asked for. */
  readonly restartable: boolean;
  readonly backoff: BackoffPolicy;
  readonly breaker: BreakerPolicy & { readonly then: 'hold' | 'exit' };
  /** Ready for so long, a driver is taken to run well. */
  readonly wellMs: number;
}

export type Transition = readonly [DriverState, ...Effect[]];

export const STOPPED: DriverState = { kind: 'stopped', history: { failuresInRow: 0, breaker: CLOSED } };

/** Pure: no clock, no process, no promise. supervisor.ts performs the effects in the order given. */
export function next(state: DriverState, event: DriverEvent, policy: Policy): Transition {
  switch (event.kind) {
    case 'start':
      return state.kind === 'stopped' ? starting(STOPPED.history) : [state];
    case 'ready':
      return onReady(state, policy);
    case 'lost':
      return onLost(state, { kind: 'judge', failedAtMs: event.nowMs, final: event.final });
    case 'gone':
      return onGone(state, event, policy);
    case 'timer':
      return onTimer(state);
    case 'restart':
      return onRestart(state);
    case 'reset':
      return onReset(state);
    case 'stop':
      return onStop(state);
  }
}

function onReady(state: DriverState, { wellMs }: Policy): Transition {
  switch (state.kind) {
    case 'starting':
      return [{ kind: 'ready', history: state.history }, { kind: 'publish' }, { kind: 'arm', ms: wellMs }];
    case 'stopped':
    case 'ready':
    case 'stopping': // It became ready while it was being ended.
    case 'backing-off':
    case 'held':
    case 'failed':
      return [state];
  }
}

function onLost(state: DriverState, afterwards: Afterwards): Transition {
  switch (state.kind) {
    case 'starting':
      return [stopping(state, afterwards), { kind: 'kill' }];
    case 'ready':
      return [stopping(state, afterwards), { kind: 'disarm' }, { kind: 'withdraw' }, { kind: 'kill' }];
    case 'stopping': // It had died by itself before a restart was asked for: that must not outrun the delay.
      return state.afterwards.kind === 'start' ? [stopping(state, afterwards)] : [state];
    case 'stopped':
    case 'backing-off':
    case 'held':
    case 'failed':
      return [state];
  }
}

function onGone(state: DriverState, event: { nowMs: number; random: number }, policy: Policy): Transition {
  switch (state.kind) {
    case 'stopping':
      switch (state.afterwards.kind) {
        case 'stop':
          return [{ kind: 'stopped', history: state.history }];
        case 'start':
          return starting(state.history);
        case 'judge':
          return judge(state.history, state.afterwards, event, policy);
      }
      break;
    case 'stopped':
    case 'starting':
    case 'ready':
    case 'backing-off':
    case 'held':
    case 'failed':
      return [state];
  }
}

function judge(
  { failuresInRow, breaker }: History,
  { failedAtMs, final }: { failedAtMs: number; final: boolean },
  { nowMs, random }: { nowMs: number; random: number },
  policy: Policy,
): Transition {
  const history = { failuresInRow: failuresInRow + 1, breaker: afterFailure(breaker, failedAtMs, policy.breaker) };
  if (final) return [{ kind: 'failed', history, because: 'final' }];
  if (!policy.restartable) return [{ kind: 'failed', history, because: 'not-restartable' }];
  if (history.breaker.kind === 'open') {
    if (policy.breaker.then === 'exit') return [{ kind: 'failed', history, because: 'breaker' }];
    const { holdMs } = history.breaker;
    return [
      { kind: 'held', history, untilMs: nowMs + holdMs },
      { kind: 'arm', ms: holdMs },
    ];
  }
  const delayMs = backoffMs(history.failuresInRow, policy.backoff, random);
  return [
    { kind: 'backing-off', history, untilMs: nowMs + delayMs },
    { kind: 'arm', ms: delayMs },
  ];
}

function onTimer(state: DriverState): Transition {
  switch (state.kind) {
    case 'ready': // It has run well.
      return [{ kind: 'ready', history: { failuresInRow: 0, breaker: afterRunningWell(state.history.breaker) } }];
    case 'backing-off':
      return starting(state.history);
    case 'held':
      return starting({ ...state.history, breaker: afterHold(state.history.breaker) });
    case 'stopped':
    case 'starting':
    case 'stopping':
    case 'failed':
      return [state];
  }
}

function onRestart(state: DriverState): Transition {
  switch (state.kind) {
    case 'starting':
      return [stopping(state, { kind: 'start' }), { kind: 'terminate' }];
    case 'ready':
      return [stopping(state, { kind: 'start' }), { kind: 'disarm' }, { kind: 'withdraw' }, { kind: 'terminate' }];
    case 'stopped':
    case 'stopping': // A stop stays a stop, and a failure is judged: asking again must not outrun the delay.
    case 'backing-off':
    case 'held':
    case 'failed':
      return [state];
  }
}

/** Nothing is held against the driver any more, and a start that is waited for happens now. */
function onReset(state: DriverState): Transition {
  const { history } = STOPPED;
  switch (state.kind) {
    case 'starting':
    case 'ready':
      return [{ ...state, history }];
    case 'stopping':
      return state.afterwards.kind === 'stop'
        ? [state]
        : [{ kind: 'stopping', history, afterwards: { kind: 'start' } }];
    case 'backing-off':
    case 'held':
      return [{ kind: 'starting', history }, { kind: 'disarm' }, { kind: 'spawn' }];
    case 'stopped':
    case 'failed': // Whoever waited for it was told that it is over.
      return [state];
  }
}

function onStop(state: DriverState): Transition {
  switch (state.kind) {
    case 'starting':
      return [stopping(state, { kind: 'stop' }), { kind: 'terminate' }];
    case 'ready':
      return [stopping(state, { kind: 'stop' }), { kind: 'disarm' }, { kind: 'withdraw' }, { kind: 'terminate' }];
    case 'stopping':
      return state.afterwards.kind === 'stop' ? [state] : [stopping(state, { kind: 'stop' })];
    case 'backing-off':
    case 'held':
      return [{ kind: 'stopped', history: state.history }, { kind: 'disarm' }];
    case 'stopped':
    case 'failed':
      return [state];
  }
}

function starting(history: History): Transition {
  return [{ kind: 'starting', history }, { kind: 'spawn' }];
}

function stopping({ history }: DriverState, afterwards: Afterwards): DriverState {
  return { kind: 'stopping', history, afterwards };
}

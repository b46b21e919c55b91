export interface BreakerPolicy {
  /** The failure that opens it, counted within the window. */
  readonly failures: number;
  readonly windowMs: number;
  readonly holdMs: number;
  readonly holdMsMax: number;
}

export type Breaker =
  | { readonly kind: 'closed'; readonly failedAtMs: readonly number[] }
  | { readonly kind: 'open'; readonly holdMs: number }
  | { readonly kind: 'half-open'; readonly holdMs: number };

export const CLOSED: Breaker = { kind: 'closed', failedAtMs: [] };

/** Counts a failure: opens at the last one that the window allows, and holds twice as long after each failed half-open start. */
export function afterFailure(breaker: Breaker, nowMs: number, policy: BreakerPolicy): Breaker {
  switch (breaker.kind) {
    case 'closed': {
      const failedAtMs = [...breaker.failedAtMs.filter((atMs) => nowMs - atMs <= policy.windowMs), nowMs];
      return failedAtMs.length < policy.failures
        ? { kind: 'closed', failedAtMs }
        : { kind: 'open', holdMs: policy.holdMs };
    }
    case 'half-open':
      return { kind: 'open', holdMs: Math.min(breaker.holdMs * 2, policy.holdMsMax) };
    case 'open':
      return breaker;
  }
}

/** The hold is over: one start goes through. */
export function afterHold(breaker: Breaker): Breaker {
  return breaker.kind === 'open' ? { kind: 'half-open', holdMs: breaker.holdMs } : breaker;
}

/** The driver has run well. Only then does a half-open breaker close: a start that dies a second later proves nothing. */
export function afterRunningWell(breaker: Breaker): Breaker {
  return breaker.kind === 'half-open' ? CLOSED : breaker;
}

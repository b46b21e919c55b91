export interface BackoffPolicy {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * The delay before the next start after `attempt` failures in a row (1, 2, …): doubling up to `maxMs`, then a jitter of
 * ±25 %, so that drivers that share one outage do not come back in step. `random` is in [0, 1).
 */
export function backoffMs(attempt: number, { firstMs, maxMs }: BackoffPolicy, random: number): number {
  const capMs = Math.min(firstMs * 2 ** (attempt - 1), maxMs);
  return Math.round(capMs * (0.75 + random / 2));
}

import { UrutauError } from '@urutau/contract';
import { type Clock, pause } from './clock.ts';

export interface HeartbeatOptions {
  readonly beat: (signal: AbortSignal) => Promise<void>;
  readonly everyMs: number;
  readonly answerMs: number;
  /** So many misses in a row mean that the driver is dead. */
  readonly misses: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export type HeartbeatVerdict =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'dead'; readonly misses: number; readonly cause: unknown }
  /** It answers, but not to our token: whoever listens there is not the driver that we started. */
  | { readonly kind: 'unauthenticated'; readonly cause: unknown };

/** What a timer may be late by on a busy machine before it tells that the host itself did not run. */
const LATE_MS_MIN = 1_000;

/**
 * Asks at a steady pace until `signal` aborts or the driver is found dead; never rejects. A miss counts when its period is over,
 * so a driver is found `misses` to `misses` + 1 periods after it fell silent, whether its socket refuses or it says nothing. One
 * whose period took much longer does not count: the host was stopped or asleep, and the answer may lie unread.
 */
export async function watchHeartbeat(options: HeartbeatOptions): Promise<HeartbeatVerdict> {
  const { everyMs, misses, clock, signal } = options;
  let missed = 0;
  while (!signal.aborted) {
    const startedMs = clock.nowMs();
    const answer = await askOnce(options);
    if (answer.kind === 'missed' && isUnauthenticated(answer.cause) && !signal.aborted) {
      return { kind: 'unauthenticated', cause: answer.cause };
    }
    await pause(clock, Math.max(0, everyMs - (clock.nowMs() - startedMs)), signal);
    if (signal.aborted) break;
    const wasAsleep = clock.nowMs() - startedMs > everyMs + Math.max(everyMs, LATE_MS_MIN);
    if (answer.kind === 'alive') missed = 0;
    else if (!wasAsleep) missed++;
    if (answer.kind === 'missed' && missed >= misses) return { kind: 'dead', misses: missed, cause: answer.cause };
  }
  return { kind: 'stopped' };
}

type Answer = { kind: 'alive' } | { kind: 'missed'; cause: unknown };

async function askOnce({ beat, answerMs, clock, signal }: HeartbeatOptions): Promise<Answer> {
  const over = new AbortController();
  const stop = () => over.abort();
  // By hand: AbortSignal.any keeps something of every call for as long as `signal` lives, which is as long as the driver.
  signal.addEventListener('abort', stop, { once: true });
  const answered = beat(over.signal).then(
    (): Answer => ({ kind: 'alive' }),
    (cause: unknown): Answer => ({ kind: 'missed', cause }),
  );
  const late = pause(clock, answerMs, over.signal).then(
    (): Answer => ({ kind: 'missed', cause: new Error(`no answer within ${answerMs} ms`) }),
  );
  try {
    return await Promise.race([answered, late]);
  } finally {
    signal.removeEventListener('abort', stop);
    over.abort();
  }
}

/** Either our own error or that of gRPC, whose status 16 is UNAUTHENTICATED. */
function isUnauthenticated(error: unknown): boolean {
  if (error instanceof UrutauError) return error.code === 'auth-failed';
  return (error as { code?: unknown } | null)?.code === 16;
}

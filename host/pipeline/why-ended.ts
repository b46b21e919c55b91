import { pause, systemClock } from '../supervisor/clock.ts';
import type { RunningDriver } from '../supervisor/supervisor.ts';
import type { SessionEnd } from './session.ts';

/** In which the death of a driver is known after its connections broke: its last words are waited for. */
const DEATH_MS = 400;

/** A stream breaks a moment before the death of its driver is known; then the death is what there is to say, and no backend is away. */
export async function unlessDied(
  end: SessionEnd,
  source: RunningDriver,
  sink: RunningDriver,
  stop: AbortSignal,
): Promise<SessionEnd> {
  if (end.kind !== 'again' || end.error?.retry !== 'backoff') return end;
  await pause(systemClock, DEATH_MS, AbortSignal.any([stop, source.diedSignal, sink.diedSignal]));
  const died = source.diedSignal.aborted || sink.diedSignal.aborted;
  return died ? { kind: 'again', why: whyEnded(source, sink), table: null, error: null } : end;
}

export function whyEnded(source: RunningDriver, sink: RunningDriver): string {
  if (source.diedSignal.aborted) return `the source driver ended: ${messageOf(source.diedSignal.reason)}`;
  if (sink.diedSignal.aborted) return `the sink driver ended: ${messageOf(sink.diedSignal.reason)}`;
  return 'asked for';
}

function messageOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

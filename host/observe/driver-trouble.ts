import type { SupervisorStatus } from '../supervisor/supervisor.ts';

/** `the sink driver is held until 2026-01-01T00:01:00.000Z: …`; null for a driver that is ready. */
export function driverTrouble(
  role: 'source' | 'sink',
  { state, nextStartAtMs, lastFailure }: SupervisorStatus,
): string | null {
  if (state === 'ready') return null;
  const until = nextStartAtMs === null ? '' : ` until ${new Date(nextStartAtMs).toISOString()}`;
  return `the ${role} driver is ${state}${until}${lastFailure === null ? '' : `: ${lastFailure.message}`}`;
}

import { UrutauError } from '@urutau/contract';
import type { Order } from '../pipeline/source/port.ts';

export interface AwaitedPosition {
  readonly table: string;
  /** Where the destination has to be, base64. */
  readonly offset: string;
  /** The offset of the table's stored checkpoint; null where it has none. Throws what is in the way. */
  stored(): Promise<string | null>;
  compare(a: string, b: string): Promise<Order>;
  /** Asks whoever moves the table to commit. False when nobody does here; throws when it does not move for a known reason. */
  hurry(): Promise<boolean>;
  /** For which nothing may move. */
  readonly stillMs: number;
  nowMs(): number;
  pause(ms: number): Promise<void>;
}

const POLL_MS = 200;

/** Resolves when the destination's checkpoint covers the offset. Throws when it stands still for too long. */
export async function awaitPosition(awaited: AwaitedPosition): Promise<void> {
  const { table, offset, stillMs, nowMs } = awaited;
  let last: string | null = null;
  let movedMs = nowMs();
  for (;;) {
    const stored = await awaited.stored();
    const order = stored === null ? null : await awaited.compare(stored, offset);
    if (order === 0 || order === 1) return;
    if (stored !== last) {
      last = stored;
      movedMs = nowMs();
    }
    const isCarried = await awaited.hurry();
    if (nowMs() - movedMs >= stillMs) throw standsStill(table, stillMs, isCarried);
    await awaited.pause(POLL_MS);
  }
}

function standsStill(table: string, stillMs: number, isCarried: boolean): UrutauError {
  const seconds = Math.round(stillMs / 1000);
  const who = isCarried ? 'though a host carries it' : 'and no host answers in the state folder';
  return new UrutauError(
    'precondition-failed',
    `the position of ${table} in the destination has not moved for ${seconds} s, ${who}: what differs may only be on its way`,
    {
      table,
      remedy: isCarried
        ? 'See `urutau-host table status` and the log of the host; a longer --timeout waits longer.'
        : 'Start the host (`urutau-host run`) and compare while it runs; where it runs with another state folder, ' +
          'name that with --state-dir, or wait longer with --timeout 6m: an idle table moves every 5 minutes.',
    },
  );
}

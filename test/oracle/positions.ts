import type { TableName } from './tables.ts';

export interface PositionSample {
  table: TableName;
  /** The committed position; null while the host has none or does not say. */
  position: string | null;
  /** Transactions on the table that were committed at the source so far. */
  changes: number;
}

interface Track {
  position: string;
  movedAtMs: number;
  changes: number;
  /** Since when the source has changes that are newer than the last move; null for none. */
  behindSinceMs: number | null;
  reported: boolean;
}

export const STILL_MS_MAX = 300_000;

/**
 * Watches committed positions over a run: one never goes back, and no table stands still for five minutes while its source
 * changes and another table moves.
 */
export class PositionWatch {
  readonly violations: string[] = [];
  readonly #compare: (a: string, b: string) => number;
  readonly #tracks = new Map<TableName, Track>();

  constructor(compare: (a: string, b: string) => number) {
    this.#compare = compare;
  }

  observe(nowMs: number, samples: readonly PositionSample[]): void {
    for (const sample of samples) this.#follow(nowMs, sample);
    for (const [table, track] of this.#tracks) this.#judge(nowMs, table, track);
  }

  last(table: TableName): string | null {
    return this.#tracks.get(table)?.position ?? null;
  }

  #follow(nowMs: number, { table, position, changes }: PositionSample): void {
    const track = this.#tracks.get(table);
    const moved = position !== null && position !== track?.position;
    if (track && moved && this.#compare(position, track.position) < 0) {
      this.violations.push(`the position of ${table} went back from ${track.position} to ${position}`);
    }
    if (moved) {
      this.#tracks.set(table, { position, movedAtMs: nowMs, changes, behindSinceMs: null, reported: false });
    } else if (track && changes > track.changes) track.behindSinceMs ??= nowMs;
  }

  #judge(nowMs: number, table: TableName, track: Track): void {
    if (track.behindSinceMs === null || track.reported || nowMs - track.behindSinceMs < STILL_MS_MAX) return;
    const mover = [...this.#tracks].find(([, other]) => other !== track && other.movedAtMs > track.behindSinceMs!);
    if (!mover) return;
    track.reported = true;
    const minutes = Math.floor((nowMs - track.movedAtMs) / 60_000);
    this.violations.push(`${table} stood still for ${minutes} min while its source changed and ${mover[0]} moved`);
  }
}

import { Random, seeded } from './random.ts';
import type { TableName } from './tables.ts';

export interface Beat {
  /** How many times the profile's rate. */
  factor: number;
  /** An episode of backlog is on one table alone. */
  only: TableName | null;
  /** When the next one begins. */
  untilMs: number;
}

const FACTOR = { min: 0.05, max: 8 };
const SIGMA = 1;
const SEGMENT_MEAN_MS = 3_000;
const EPISODE_MS = { min: 10_000, max: 40_000 };
/** One that followed at once would make a single, longer one of both. */
const EPISODE_GAP_MS = { min: 1_000, mean: 120_000 };
/** A shorter run has no room for an episode. */
export const EPISODE_RUN_MS_MIN = 60_000;
/** The first seconds know no lull: they are those in which the tables are copied. */
const BRISK_MS = 10_000;

/**
 * The rate over the run's own time, which is that of a machine that keeps up: lulls, bursts, and episodes of backlog on
 * `events`. A pure function of the seed; asked for times that do not go back.
 */
export class Pace {
  readonly #random: Random;
  #beat: Beat = { factor: 1, only: null, untilMs: 0 };
  #episodeAtMs: number;

  constructor({ seed, runMs }: { seed: number; runMs: number | null }) {
    this.#random = new Random(seeded(seed));
    const room = runMs !== null && runMs >= EPISODE_RUN_MS_MIN;
    this.#episodeAtMs = room ? this.#random.between(0.15, 0.35) * runMs : Number.POSITIVE_INFINITY;
  }

  at(ms: number): Beat {
    while (ms >= this.#beat.untilMs) this.#nextSegment();
    return this.#beat;
  }

  /** When the work is done that takes so long at the profile's rate, if it begins at `ms`. */
  after(ms: number, workMs: number): number {
    let atMs = ms;
    for (let leftMs = workMs; ; ) {
      const { factor, untilMs } = this.at(atMs);
      const doneMs = atMs + leftMs / factor;
      if (doneMs < untilMs) return doneMs;
      leftMs -= (untilMs - atMs) * factor;
      atMs = untilMs;
    }
  }

  #nextSegment(): void {
    const fromMs = this.#beat.untilMs;
    if (fromMs >= this.#episodeAtMs) {
      const untilMs = fromMs + this.#random.between(EPISODE_MS.min, EPISODE_MS.max);
      this.#beat = { factor: FACTOR.max, only: 'events', untilMs };
      this.#episodeAtMs =
        untilMs + EPISODE_GAP_MS.min + this.#random.exponential(EPISODE_GAP_MS.mean - EPISODE_GAP_MS.min);
      return;
    }
    const burst = this.#random.chance(0.1);
    const factor = burst
      ? this.#random.between(4, FACTOR.max)
      : Math.exp(-(SIGMA ** 2) / 2) * this.#random.logNormal(SIGMA);
    const min = fromMs < BRISK_MS ? 1 : FACTOR.min;
    const lastsMs = burst ? this.#random.between(200, 1_000) : this.#random.exponential(SEGMENT_MEAN_MS);
    const untilMs = Math.min(fromMs + lastsMs, Math.max(this.#episodeAtMs, fromMs + 1));
    this.#beat = { factor: Math.min(FACTOR.max, Math.max(min, factor)), only: null, untilMs };
  }
}

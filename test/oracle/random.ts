/** A source of random numbers in [0, 1) that gives the same row of numbers for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The distributions of the workload over one source of random numbers. */
export class Random {
  readonly #next: () => number;

  constructor(next: () => number) {
    this.#next = next;
  }

  unit(): number {
    return this.#next();
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  /** A whole number in [0, below). */
  below(below: number): number {
    return Math.floor(this.#next() * below);
  }

  between(low: number, high: number): number {
    return low + this.#next() * (high - low);
  }

  exponential(mean: number): number {
    return -Math.log(1 - this.#next()) * mean;
  }

  /** Its median is 1. */
  logNormal(sigma: number): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.#next())) * Math.cos(2 * Math.PI * this.#next());
    return Math.exp(sigma * normal);
  }

  /** A whole number from `low` to `high`, each order of magnitude as likely as another. */
  logUniform(low: number, high: number): number {
    return Math.round(low * (high / low) ** this.#next());
  }

  /** The index of one of the weights. */
  weighted(weights: readonly number[]): number {
    let left = this.#next() * weights.reduce((sum, weight) => sum + weight, 0);
    for (const [index, weight] of weights.entries()) {
      left -= weight;
      if (left < 0) return index;
    }
    return weights.length - 1;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    for (let i = left.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [left[i], left[j]] = [left[j]!, left[i]!];
    }
    return left;
  }
}

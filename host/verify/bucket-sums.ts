import type { RowHashes } from './row-hashes.ts';

export const BUCKETS = 65_536;

/**
 * A table in a megabyte, whatever its size: for each bucket of keys the number of its rows and the sum of their hashes, which
 * does not depend on their order. Two tables of equal sums are equal.
 */
export class BucketSums {
  readonly counts = new Uint32Array(BUCKETS);
  readonly #first = new Int32Array(BUCKETS);
  readonly #second = new Int32Array(BUCKETS);
  rows = 0;

  add({ key, row }: RowHashes): void {
    const { first: keys } = key;
    const { first, second } = row;
    for (let at = 0; at < keys.length; at++) {
      const bucket = bucketOf(keys[at]!);
      this.counts[bucket]!++;
      this.#first[bucket]! += first[at]!;
      this.#second[bucket]! += second[at]!;
    }
    this.rows += keys.length;
  }

  /** The buckets in which the two do not hold the same rows, in order. */
  differing(other: BucketSums): number[] {
    const buckets: number[] = [];
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const equal =
        this.counts[bucket] === other.counts[bucket] &&
        this.#first[bucket] === other.#first[bucket] &&
        this.#second[bucket] === other.#second[bucket];
      if (!equal) buckets.push(bucket);
    }
    return buckets;
  }
}

/** By the first half of the key's hash. */
export function bucketOf(key: number): number {
  return key & (BUCKETS - 1);
}

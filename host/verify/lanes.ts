/**
 * Two hashes of 32 bits for each row of a batch, which take in one word after the other. They differ in their constants,
 * so that together they are one hash of 64 bits; no word is lost in either, whatever came before it.
 */
export class Lanes {
  readonly first: Int32Array;
  readonly second: Int32Array;

  constructor(rows: number, seed: number) {
    this.first = new Int32Array(rows).fill(seed);
    this.second = new Int32Array(rows).fill(~seed);
  }

  /** Begins where `other` is now. */
  static from(other: Lanes): Lanes {
    const lanes = new Lanes(other.first.length, 0);
    lanes.first.set(other.first);
    lanes.second.set(other.second);
    return lanes;
  }

  /** Spreads each bit of a row's hash over all bits of both lanes; nothing is taken in afterwards. */
  finish(): this {
    const { first, second } = this;
    for (let row = 0; row < first.length; row++) {
      const one = avalanche(first[row]! ^ second[row]!);
      const two = avalanche(second[row]! + one);
      second[row] = two;
      first[row] = one + two;
    }
    return this;
  }
}

/** What `first` becomes when it takes in a word. */
export function takeFirst(hash: number, word: number): number {
  const k = Math.imul(word, 0xcc9e2d51);
  const h = hash ^ Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

export function takeSecond(hash: number, word: number): number {
  const k = Math.imul(word, 0x239b961b);
  const h = hash ^ Math.imul((k << 16) | (k >>> 16), 0xab0e9789);
  return (Math.imul((h << 17) | (h >>> 15), 5) + 0x561ccd1b) | 0;
}

function avalanche(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

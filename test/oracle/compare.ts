import type { Code } from './tables.ts';

/** A row as it was read: its key, its revision, and a fingerprint of everything beside the key. */
export interface RowImage {
  code: Code;
  rev: number;
  image: number;
}

export const CLASSES = ['missing', 'extra', 'resurrected', 'stale', 'incorrect', 'duplicated'] as const;
/**
 * `extra`: its key never was at the source. `resurrected`: its key was deleted there. `stale`: an older revision.
 * `incorrect`: another content under the same revision, or a revision that is yet to come. `duplicated`: its key is there
 * more than once.
 */
export type DifferenceClass = (typeof CLASSES)[number];

export interface Differences {
  /** Rows that were expected. */
  rows: number;
  counts: Record<DifferenceClass, number>;
  /** Some of them, in words. */
  examples: string[];
}

export interface Comparison {
  expected: Rows;
  actual: Rows;
  compare: (a: Code, b: Code) => number;
  wasDeleted: (code: Code) => boolean;
  /** The key in words. */
  name: (code: Code) => string;
}

type Rows = AsyncIterable<RowImage> | Iterable<RowImage>;

const EXAMPLES_MAX = 5;

/** Merges two readings in the order of their keys, holding one row of each. Throws when one is not in that order. */
export async function compareRows({ expected, actual, compare, wasDeleted, name }: Comparison): Promise<Differences> {
  const found: Differences = {
    rows: 0,
    counts: { missing: 0, extra: 0, resurrected: 0, stale: 0, incorrect: 0, duplicated: 0 },
    examples: [],
  };
  const note = (kind: DifferenceClass, code: Code, words = '') => {
    if (++found.counts[kind] <= EXAMPLES_MAX) found.examples.push(`${kind} ${name(code)}${words}`);
  };
  const left = await Reader.open(expected, compare, 'expected');
  const right = await Reader.open(actual, compare, 'actual');
  try {
    while (left.row !== null || right.row !== null) {
      const order = left.row === null ? 1 : right.row === null ? -1 : compare(left.row.code, right.row.code);
      if (order < 0) {
        note('missing', left.row!.code, `, expected rev ${left.row!.rev}`);
      } else {
        const theirs = right.row!;
        if (order > 0) note(wasDeleted(theirs.code) ? 'resurrected' : 'extra', theirs.code, `, rev ${theirs.rev}`);
        else judge(left.row!, theirs, note);
        // A key that is there twice is judged by each of its rows.
        while ((await right.next()) && compare(right.row!.code, theirs.code) === 0) {
          note('duplicated', theirs.code, `, revs ${theirs.rev} and ${right.row!.rev}`);
          if (order === 0) judge(left.row!, right.row!, note);
        }
      }
      if (order <= 0) {
        found.rows++;
        const { code } = left.row!;
        if ((await left.next()) && compare(code, left.row!.code) === 0) throw new Error(`expected ${name(code)} once`);
      }
    }
  } finally {
    await Promise.all([left.close(), right.close()]);
  }
  return found;
}

function judge(
  expected: RowImage,
  actual: RowImage,
  note: (kind: DifferenceClass, code: Code, words: string) => void,
): void {
  if (actual.rev < expected.rev) note('stale', actual.code, `, rev ${actual.rev}, expected ${expected.rev}`);
  else if (actual.rev > expected.rev) note('incorrect', actual.code, `, rev ${actual.rev}, expected ${expected.rev}`);
  else if (actual.image !== expected.image) note('incorrect', actual.code, `, other content under rev ${actual.rev}`);
}

class Reader {
  row: RowImage | null = null;
  readonly #rows: AsyncIterator<RowImage> | Iterator<RowImage>;
  readonly #compare: Comparison['compare'];
  readonly #side: string;

  private constructor(rows: Rows, compare: Comparison['compare'], side: string) {
    this.#rows = Symbol.asyncIterator in rows ? rows[Symbol.asyncIterator]() : rows[Symbol.iterator]();
    this.#compare = compare;
    this.#side = side;
  }

  static async open(rows: Rows, compare: Comparison['compare'], side: string): Promise<Reader> {
    const reader = new Reader(rows, compare, side);
    await reader.next();
    return reader;
  }

  async next(): Promise<boolean> {
    const before = this.row;
    const { done, value } = await this.#rows.next();
    this.row = done ? null : value;
    if (before && this.row && this.#compare(before.code, this.row.code) > 0) {
      throw new Error(`the ${this.#side} rows are not in the order of their keys`);
    }
    return this.row !== null;
  }

  async close(): Promise<void> {
    await this.#rows.return?.();
  }
}

import type { Path } from './path.ts';

/** Knows where each field of one text stands. Holds offsets only, never the text. */
export class Places {
  readonly #places = new Map<string, Place>();
  readonly #toLine: (offset: number) => Position;

  constructor(toLine: (offset: number) => Position) {
    this.#toLine = toLine;
  }

  record(path: Path, place: Place): void {
    this.#places.set(keyOf(path), place);
  }

  /** The place of a field; for a missing field that of its nearest present parent. */
  locate(path: Path, { atKey = false }: { atKey?: boolean } = {}): Position {
    const place = this.#places.get(keyOf(path));
    if (place !== undefined) return this.at(atKey ? (place.key ?? place.value) : place.value);
    if (path.length === 0) return { line: 1, column: 1 };
    return this.locate(path.slice(0, -1), { atKey: true });
  }

  at(offset: number): Position {
    return this.#toLine(offset);
  }
}

/** Counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Offsets into the text. A list's item has no key. */
export interface Place {
  readonly key?: number;
  readonly value: number;
}

function keyOf(path: Path): string {
  return JSON.stringify(path);
}

import type { Lsn } from '../lsn.ts';
import { compareOffsets, type Offset } from '../offset.ts';

/** What each assigned table still needs of the log. The log is released up to the least of them, by nothing else. */
export class Claims {
  readonly #confirmed = new Map<string, Offset>();

  /** A table that was never confirmed claims all from its start on. */
  assign(table: string, start: Offset): void {
    this.#confirmed.set(table, start);
  }

  /** Drops the claims of all other tables. */
  retain(tables: ReadonlySet<string>): void {
    for (const table of this.#confirmed.keys()) if (!tables.has(table)) this.#confirmed.delete(table);
  }

  /** Older offsets, and tables that are not assigned, change nothing. */
  confirm(table: string, offset: Offset): void {
    const confirmed = this.#confirmed.get(table);
    if (confirmed && compareOffsets(offset, confirmed) > 0) this.#confirmed.set(table, offset);
  }

  get(table: string): Offset | null {
    return this.#confirmed.get(table) ?? null;
  }

  /** Everything that committed before it is durable for all tables; null when none is assigned. */
  get least(): Lsn | null {
    let least: Lsn | null = null;
    for (const { lsn } of this.#confirmed.values()) if (least === null || lsn < least) least = lsn;
    return least;
  }
}

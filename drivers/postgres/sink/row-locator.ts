import type { EncodedRows } from './batch-messages.ts';
import { ORDINALS_PER_ROW } from './batch-messages.ts';
import type { TablePlan } from './table-plan.ts';
import { fieldOf } from './tuple-message.ts';

/** Where a change came from, and the key as it was sent, in key order; no key when its bytes are gone. */
export interface FoundRow {
  readonly seq: number;
  readonly row: number;
  readonly key: readonly (Buffer | null)[] | null;
}

/** The server names a row while later ones are under way; this much of what was sent is kept to tell its key. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** Ordinal and delete flag stand before the columns of a staged tuple. */
const STAGE_PREFIX_FIELDS = 2;

/** Finds the change that the server refused, by the line of a COPY or by the ordinal of a staged row. */
export class RowLocator {
  readonly #plan: TablePlan;
  readonly #batches: { seq: number; base: number }[] = [];
  readonly #sent: { rows: EncodedRows; seq: number; lineFirst: number }[] = [];
  #sentBytes = 0;
  #lineNext = 1;

  constructor(plan: TablePlan) {
    this.#plan = plan;
  }

  batchBegins(seq: number, base: number): void {
    this.#batches.push({ seq, base });
  }

  sent(rows: EncodedRows, seq: number): void {
    this.#sent.push({ rows, seq, lineFirst: this.#lineNext });
    this.#lineNext += rows.tuples.count;
    this.#sentBytes += rows.message.length;
    while (this.#sent.length > 1 && this.#sentBytes > KEPT_BYTES) {
      this.#sentBytes -= this.#sent.shift()!.rows.message.length;
    }
  }

  /** The batches of a segment that is committed together with this one. */
  continueWith(next: RowLocator): void {
    this.#batches.push(...next.#batches);
  }

  /** Rows go to the server that were never sent from here: their lines, and those after them, have no key to tell. */
  losesCount(): void {
    this.#lineNext = Number.MAX_SAFE_INTEGER / 2;
  }

  byLine(line: number): FoundRow | null {
    const found = this.#sent.findLast(({ lineFirst }) => lineFirst <= line);
    const tuple = found === undefined ? -1 : line - found.lineFirst;
    if (found === undefined || tuple >= found.rows.tuples.count) return null;
    const { message, tuples } = found.rows;
    const skip = this.#plan.mode.kind === 'upsert' ? STAGE_PREFIX_FIELDS : 0;
    const key = this.#plan.key.map((position) => fieldOf(message, tuple, skip + position));
    return { seq: found.seq, row: tuples.rows[tuple]!, key };
  }

  byOrdinal(ordinal: number): Pick<FoundRow, 'seq' | 'row'> | null {
    const batch = this.#batches.findLast(({ base }) => base <= ordinal);
    return batch === undefined ? null : { seq: batch.seq, row: Math.floor((ordinal - batch.base) / ORDINALS_PER_ROW) };
  }

  clear(): void {
    this.#batches.length = 0;
    this.#sent.length = 0;
    this.#sentBytes = 0;
    this.#lineNext = 1;
  }
}

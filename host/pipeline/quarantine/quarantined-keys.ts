import { createHash } from 'node:crypto';
import { UrutauError } from '@urutau/contract';
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import { type BatchColumn, isNull } from './batch-columns.ts';
import { cellJson, rowJson } from './cell-text.ts';

/** The most keys of one table that are set aside; their hashes are part of each of its checkpoints. */
export const QUARANTINED_KEYS_MAX = 1_000;

/** A row's key: as people read it, and as the checkpoint holds it. */
export interface RowKey {
  text: string;
  hash: string;
}

const HASH_BYTES = 8;

/** The key of one row, formed by the host alone; null where a part of it is NULL. */
export function keyOf(columns: readonly BatchColumn[], row: number): RowKey | null {
  if (columns.some((column) => isNull(column, row))) return null;
  const values = `[${columns.map((column) => cellJson(column, row)).join(',')}]`;
  const hash = createHash('sha256').update(values).digest().subarray(0, HASH_BYTES);
  return { text: rowJson(columns, row), hash: hash.toString('base64').replace(/=+$/, '') };
}

/**
 * The keys of a table whose changes go to the dead letters. Each has the ordinal from which on its dead letters count: an
 * older one was applied, or made void, before the key was set aside once more. What was written before there was any key
 * at all, or under checkpoints that are gone, has another epoch and counts for nothing.
 */
export class QuarantinedKeys {
  readonly #since: Map<string, bigint>;
  #epoch: string;

  private constructor(since: Map<string, bigint>, epoch: string) {
    this.#since = since;
    this.#epoch = epoch;
  }

  static none(): QuarantinedKeys {
    return new QuarantinedKeys(new Map(), '');
  }

  static of({ quarantined = [], quarantinedSince = [], quarantinedIn = '' }: StoredKeys): QuarantinedKeys {
    const since = quarantined.map((hash, index) => [hash, fromBase36(quarantinedSince[index])] as const);
    return new QuarantinedKeys(new Map(since), quarantinedIn);
  }

  get size(): number {
    return this.#since.size;
  }

  /** Of the dead letters that are written now. */
  get epoch(): string {
    return this.#epoch;
  }

  hashes(): string[] {
    return [...this.#since.keys()];
  }

  copy(): QuarantinedKeys {
    return new QuarantinedKeys(new Map(this.#since), this.#epoch);
  }

  has(hash: string): boolean {
    return this.#since.has(hash);
  }

  /** Whether a dead letter of this key still waits. */
  counts(hash: string, { ordinal, epoch }: { ordinal: bigint; epoch: string }): boolean {
    const since = this.#since.get(hash);
    return since !== undefined && since <= ordinal && epoch === this.#epoch;
  }

  /** Throws `row-refused` for one key too many; a key that is there keeps its ordinal. `run` is that of the host. */
  add({ hash, text }: RowKey, { since, run, table, why }: Joining): void {
    if (this.#since.has(hash)) return;
    if (this.#since.size >= QUARANTINED_KEYS_MAX) throw tooMany(table, text, why);
    if (this.#since.size === 0) this.#epoch = run;
    this.#since.set(hash, since);
  }

  delete(hash: string): void {
    this.#since.delete(hash);
  }

  clear(): void {
    this.#since.clear();
  }

  /** As fields of a checkpoint; none where there is no key. */
  stored(): StoredKeys {
    if (this.size === 0) return {};
    return {
      quarantined: [...this.#since.keys()],
      quarantinedSince: [...this.#since.values()].map((since) => since.toString(36)),
      quarantinedIn: this.#epoch,
    };
  }
}

export interface Joining {
  since: bigint;
  run: string;
  table: string;
  why: string;
}

export type StoredKeys = Pick<Checkpoint, 'quarantined' | 'quarantinedSince' | 'quarantinedIn'>;

function fromBase36(text = '0'): bigint {
  return [...text].reduce((value, digit) => value * 36n + BigInt(Number.parseInt(digit, 36)), 0n);
}

function tooMany(table: string, key: string, why: string): UrutauError {
  return new UrutauError(
    'row-refused',
    `${QUARANTINED_KEYS_MAX.toLocaleString('en-US')} keys of ${table} are quarantined, and one more would be: ${why}`,
    {
      table,
      key,
      remedy:
        'Correct what the target refuses, then run `urutau-host table replay`, which applies the dead letters and goes on.',
    },
  );
}

import type { UrutauError } from '@urutau/contract';
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import type { SetAside } from '../quarantine/quarantining-stream.ts';
import type { Committed } from '../relay.ts';
import { next, type PauseReason, type TableEffect, type TableEvent, type TableState } from './state.ts';

/** What the pipeline file says of a table, as the pipeline needs it. */
export interface TableSettings {
  source: string;
  target: string;
  /** Undefined: the source's own key; empty: none. */
  primaryKey?: readonly string[];
  writeMode: 'upsert' | 'append' | 'append-idempotent';
  onDelete: 'record' | 'skip';
  onPoison: 'pause' | 'stop' | 'quarantine';
  onTruncate: 'apply' | 'ignore' | 'fail';
  createIfNotExists: boolean;
  chunkRows?: number;
}

export interface TableTotals {
  snapshotRows: number;
  inserts: number;
  updates: number;
  deletes: number;
  commits: number;
  bytes: number;
  truncatesIgnored: number;
  /** Changes that went to the dead letters. They count among the others too. */
  quarantined: number;
}

export const NO_TOTALS: Readonly<TableTotals> = {
  snapshotRows: 0,
  inserts: 0,
  updates: 0,
  deletes: 0,
  commits: 0,
  bytes: 0,
  truncatesIgnored: 0,
  quarantined: 0,
};

/** One table over the whole run: its state, what it has done, and what a person asked of it. */
export class Table {
  readonly settings: TableSettings;
  readonly totals: TableTotals = { ...NO_TOTALS };
  /** As last committed or read in this run. */
  checkpoint: Checkpoint | null = null;
  /** Rows that its snapshot will have, as far as the source can tell. */
  estimatedRows: number | null = null;
  lastCommitTs: string | null = null;
  lastCommitAtMs: number | null = null;
  lastCommitMillis: number | null = null;
  /** The last row that the sink refused and that was set aside, in this run. */
  lastRefusal: SetAside | null = null;
  /** `table resync`: the next session truncates the target and reads the table anew. */
  resyncAsked = false;
  /** `table resume` after a change of schema: the next shape is taken, if the target fits it. */
  acceptNextShape = false;
  #state: TableState = { kind: 'waiting' };
  readonly #changed: (table: Table, before: TableState) => void;

  constructor(settings: TableSettings, changed: (table: Table, before: TableState) => void) {
    this.settings = settings;
    this.#changed = changed;
  }

  get state(): TableState {
    return this.#state;
  }

  get name(): string {
    return this.settings.source;
  }

  /** True when the next session will carry it. */
  get wanted(): boolean {
    return this.#state.kind !== 'paused' && this.#state.kind !== 'done';
  }

  apply(event: TableEvent): readonly TableEffect[] {
    const before = this.#state;
    const [state, ...effects] = next(before, event);
    this.#state = state;
    if (state !== before) this.#changed(this, before);
    return effects;
  }

  /** What a commit has set aside. */
  quarantined(letters: readonly SetAside[]): void {
    this.totals.quarantined += letters.length;
    this.lastRefusal = letters.findLast(({ code }) => code !== 'follows') ?? this.lastRefusal;
  }

  committed(done: Committed, nowMs: number): void {
    const { totals } = this;
    totals.snapshotRows += done.snapshotRows;
    totals.inserts += done.inserts;
    totals.updates += done.updates;
    totals.deletes += done.deletes;
    totals.bytes += done.bytes;
    totals.commits++;
    this.checkpoint = done.checkpoint;
    this.lastCommitTs = done.commitTs ?? this.lastCommitTs;
    this.lastCommitAtMs = nowMs;
    this.lastCommitMillis = done.millis;
  }
}

export function reasonOf(error: UrutauError): PauseReason {
  const { code, message, remedy, context } = error;
  return { by: 'fault', code, message, remedy, ...(context.key === undefined ? {} : { key: context.key }) };
}

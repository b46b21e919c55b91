import type { Code, TableName } from './tables.ts';
import { TABLE_NAMES } from './tables.ts';

export interface Payload {
  fingerprint: number;
  bytes: number;
}

export interface LiveRow {
  readonly code: Code;
  readonly rev: number;
  readonly payload: Payload | null;
}

/** What one writer knows of one table: the rows that are there, and the keys that were and are not. */
export interface Pages {
  readonly live: LiveRow[];
  readonly dead: Code[];
}

/**
 * Key → row image of the keys that one writer owns. A transaction changes it while it is planned; `undo` takes back what
 * was not committed, and leaves everything as it was, also in its order.
 */
export class Book {
  readonly pages: Readonly<Record<TableName, Pages>> = Object.fromEntries(
    TABLE_NAMES.map((name) => [name, { live: [], dead: [] }]),
  ) as unknown as Record<TableName, Pages>;
  #undo: (() => void)[] = [];

  insert(table: TableName, row: LiveRow): void {
    const { live } = this.pages[table];
    live.push(row);
    this.#undo.push(() => live.pop());
  }

  /** The key with this index among the dead is used again. */
  revive(table: TableName, index: number): Code {
    const { dead } = this.pages[table];
    return this.#take(dead, index);
  }

  update(table: TableName, index: number, row: LiveRow): void {
    const { live, dead } = this.pages[table];
    const before = live[index]!;
    live[index] = row;
    this.#undo.push(() => {
      live[index] = before;
    });
    if (before.code !== row.code) this.#bury(dead, before.code);
  }

  delete(table: TableName, index: number): LiveRow {
    const { live, dead } = this.pages[table];
    const row = this.#take(live, index);
    this.#bury(dead, row.code);
    return row;
  }

  /** A place to which `undo` can go back. */
  mark(): number {
    return this.#undo.length;
  }

  undo(mark = 0): void {
    while (this.#undo.length > mark) this.#undo.pop()!();
  }

  commit(): void {
    this.#undo = [];
  }

  #bury(dead: Code[], code: Code): void {
    dead.push(code);
    this.#undo.push(() => dead.pop());
  }

  #take<T>(items: T[], index: number): T {
    const taken = items[index]!;
    const last = items.pop()!;
    if (index < items.length) items[index] = last;
    this.#undo.push(() => {
      if (index < items.length) items[index] = taken;
      items.push(last);
    });
    return taken;
  }
}

import type { RowImage } from './compare.ts';
import type { Code, TableName } from './tables.ts';
import type { Transaction } from './transaction.ts';

/** What the oracle needs of a source. One for each vendor. */
export interface OracleSource {
  /** Makes the three tables, empty, and one row for each writer in a table that is not replicated. */
  createTables(options: { lanes: number }): Promise<void>;
  /** Rejects when the server is away. */
  connect(lane: number): Promise<SourceWriter>;
  /** The server or the connection failed, and not the statement. */
  isOutage(error: unknown): boolean;
  /** A table's name in a pipeline file and in the host's status. */
  nameOf(table: TableName): string;
  rows(table: TableName): AsyncIterable<RowImage>;
  /** The end of the log, in the form in which the host shows positions. */
  position(): Promise<string>;
  /** Below, at or above 0, as the positions lie in the log. */
  comparePositions(a: string, b: string): number;
  close(): Promise<void>;
}

/** One connection, used for one transaction after the other. After it rejected it is only closed. */
export interface SourceWriter {
  /** Marks the transaction with its number. Resolves when the source has confirmed its end. */
  run(transaction: Transaction, number: number): Promise<void>;
  /** The number of the newest one that was committed, after waiting for what an older connection still has under way. */
  lastCommitted(): Promise<number>;
  close(): Promise<void>;
}

/** What the oracle needs of a destination. One for each vendor. */
export interface OracleDestination {
  /** In the order of the keys, read from the rows themselves and not from an index that could hide some. */
  rows(table: TableName): AsyncIterable<RowImage>;
  /** Null where the row, or its table, is not there. */
  revOf(table: TableName, code: Code): Promise<number | null>;
  close(): Promise<void>;
}

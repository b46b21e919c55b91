import type { Code, TableName } from './tables.ts';

export interface InsertedRow {
  code: Code;
  rev: number;
  payload: string | null;
  /** The key was there before, and was deleted. */
  reused: boolean;
}

export type Statement =
  /** All rows in one statement. */
  | { kind: 'insert'; table: TableName; rows: InsertedRow[] }
  | {
      kind: 'update';
      table: TableName;
      code: Code;
      /** The key afterwards. */
      to: Code;
      rev: number;
      /** Undefined: the statement does not mention the payload. */
      payload: string | null | undefined;
      /** Bytes of the payload that the statement leaves alone. */
      keptBytes: number;
    }
  | { kind: 'delete'; table: TableName; code: Code }
  | { kind: 'savepoint' }
  | { kind: 'undo-to-savepoint' }
  | { kind: 'release-savepoint' };

export interface Transaction {
  statements: readonly Statement[];
  /** Rows that were written, also those that were taken back. */
  rows: number;
  end: 'commit' | 'rollback';
}

/** Without what a savepoint took back. */
export function lastingStatements({ statements }: Transaction): Statement[] {
  const lasting: Statement[] = [];
  for (const statement of statements) {
    if (statement.kind === 'undo-to-savepoint') {
      lasting.splice(lasting.findLastIndex(({ kind }) => kind === 'savepoint'));
    } else if (statement.kind !== 'release-savepoint') lasting.push(statement);
  }
  return lasting.filter(({ kind }) => kind !== 'savepoint');
}

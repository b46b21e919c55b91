import { LARGE_PAYLOAD_BYTES } from './generator.ts';
import { type Code, HALF_OF_64_BITS, TABLE_NAMES, type TableName } from './tables.ts';
import { lastingStatements, type Statement, type Transaction } from './transaction.ts';

const OF_EACH_TABLE = ['insert', 'update', 'delete', 'key change', 'reused key'] as const;
const OF_EACH_SIDE = ['insert', 'update', 'delete'] as const;
const OF_TRANSACTIONS = [
  'single-row transaction',
  'maximal transaction',
  'multi-row insert',
  'several tables in one transaction',
  'rolled-back transaction',
  'savepoint undone',
  'large payload left alone by an update',
  'payload set to NULL',
] as const;
/** What takes a while, or a host that is just beginning. */
const OF_TIME = ['backlog episode', 'mutations before the snapshot', 'mutations during the snapshot'] as const;

export type Case =
  | `${TableName}: ${(typeof OF_EACH_TABLE)[number]}`
  | `accounts: ${(typeof OF_EACH_SIDE)[number]} ${'below' | 'from'} 2^63`
  | (typeof OF_TRANSACTIONS)[number]
  | (typeof OF_TIME)[number];

/** What a run of any length can hit. */
export const OPERATION_CASES: readonly Case[] = [
  ...TABLE_NAMES.flatMap((table) => OF_EACH_TABLE.map((what): Case => `${table}: ${what}`)),
  ...OF_EACH_SIDE.flatMap((what): Case[] => [`accounts: ${what} below 2^63`, `accounts: ${what} from 2^63`]),
  ...OF_TRANSACTIONS,
];
export const ALL_CASES: readonly Case[] = [...OPERATION_CASES, ...OF_TIME];

/** Counts the cases that a run has hit. One that was demanded and not hit has proven nothing, and fails the run. */
export class Coverage {
  readonly #counts = new Map<Case, number>();

  hit(...cases: readonly Case[]): void {
    for (const one of cases) this.#counts.set(one, this.count(one) + 1);
  }

  count(one: Case): number {
    return this.#counts.get(one) ?? 0;
  }

  missing(demanded: readonly Case[]): Case[] {
    return demanded.filter((one) => this.count(one) === 0);
  }
}

/** What a transaction has proven once its end is known. */
export function casesOf(
  transaction: Transaction,
  { committed, rowsMax }: { committed: boolean; rowsMax: number },
): Case[] {
  if (!committed) return transaction.end === 'rollback' ? ['rolled-back transaction'] : [];
  const lasting = lastingStatements(transaction);
  const tables = new Set(lasting.flatMap((statement) => ('table' in statement ? [statement.table] : [])));
  const whole: [Case, boolean][] = [
    ['single-row transaction', transaction.rows === 1],
    ['maximal transaction', transaction.rows >= rowsMax],
    ['several tables in one transaction', tables.size > 1],
    ['savepoint undone', transaction.statements.some(({ kind }) => kind === 'undo-to-savepoint')],
  ];
  return [...whole.flatMap(([name, isHit]) => (isHit ? [name] : [])), ...lasting.flatMap(casesOfStatement)];
}

function casesOfStatement(statement: Statement): Case[] {
  switch (statement.kind) {
    case 'insert':
      return [
        ...(statement.rows.length > 1 ? (['multi-row insert'] as const) : []),
        ...statement.rows.flatMap(({ code, reused }): Case[] => [
          `${statement.table}: insert`,
          ...(reused ? [`${statement.table}: reused key` as const] : []),
          ...sideCase(statement.table, 'insert', code),
        ]),
      ];
    case 'update':
      return [
        `${statement.table}: update`,
        ...(statement.code === statement.to ? [] : [`${statement.table}: key change` as const]),
        ...sideCase(statement.table, 'update', statement.code),
        ...(statement.keptBytes >= LARGE_PAYLOAD_BYTES ? (['large payload left alone by an update'] as const) : []),
        ...(statement.payload === null ? (['payload set to NULL'] as const) : []),
      ];
    case 'delete':
      return [`${statement.table}: delete`, ...sideCase(statement.table, 'delete', statement.code)];
    case 'savepoint':
    case 'undo-to-savepoint':
    case 'release-savepoint':
      return [];
  }
}

function sideCase(table: TableName, what: (typeof OF_EACH_SIDE)[number], code: Code): Case[] {
  if (table !== 'accounts') return [];
  return [`accounts: ${what} ${BigInt(code) < HALF_OF_64_BITS ? 'below' : 'from'} 2^63`];
}

import { UrutauError } from '@urutau/sdk';
import type pg from 'pg';
import { asPgError } from '../connection.ts';
import { givenKeySql, type MergeContent, mergeSql, REFUSED_ANSWER_SQL, refusedSql, stagedKeySql } from './merge.ts';
import type { RowLocator } from './row-locator.ts';
import type { TablePlan } from './table-plan.ts';

/** Where a refused row is. */
export interface RefusedRow {
  readonly stream?: number;
  readonly seq?: number;
  readonly row?: number;
  readonly key?: string;
  readonly column?: string;
  /** Further rows that are refused too. */
  readonly more?: readonly (readonly [seq: number, row: number])[];
}

/** True for an error that says that a value or a constraint is to blame, and not the server. */
export function isRefusal(error: unknown): error is pg.DatabaseError {
  return /^2[23]/.test(sqlStateOf(error) ?? '');
}

/** ON CONFLICT met one key twice: the commit was no plain sequence of inserts after all. */
export function isRepeatedKey(error: unknown): boolean {
  return sqlStateOf(error) === '21000';
}

export function sqlStateOf(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code;
}

/** What is told of the server's error: its message and detail quote values, so they are not even kept as the cause. */
export interface Refusal {
  code?: string | undefined;
  constraint?: string | null | undefined;
  column?: string | null | undefined;
}

export function rowRefused(plan: TablePlan, error: Refusal, where: RefusedRow): UrutauError {
  const constraint = error.constraint ? `, constraint ${error.constraint}` : '';
  return refused(
    plan,
    { ...(error.column ? { column: error.column } : {}), ...where },
    `${reasonOf(error)} (SQLSTATE ${error.code}${constraint})`,
  );
}

/** `reason` says what is wrong without the value. */
export function refused({ table, target }: TablePlan, where: RefusedRow, reason: string): UrutauError {
  const key = where.key === undefined ? 'a row' : `the row with key ${where.key}`;
  const column = where.column === undefined ? '' : `, column ${where.column}`;
  const known = Object.fromEntries(Object.entries(where).filter(([, value]) => value !== undefined));
  return new UrutauError('row-refused', `${target.full} refuses ${key}${column}: ${reason}`, { table, ...known });
}

/** Maps what is not a refusal: a table that is gone, a server that does not answer. */
export function asSinkError(plan: TablePlan, error: unknown): UrutauError {
  const mapped = asPgError(error, 'sink');
  const { code, message, remedy, context, cause } = mapped;
  return context.table === plan.table
    ? mapped
    : new UrutauError(code, `${plan.target.full}: ${message}`, { ...context, table: plan.table, remedy, cause });
}

/** Where the server says it stopped, in its own language: `COPY stage, line 7, column c3`. */
export function placeInCopy(error: pg.DatabaseError): { line: number; tupleColumn: string | undefined } | null {
  const match = /^COPY [^,]*,\D*(\d+)(?:,\s*\S+\s+([^:\n]+))?/m.exec(error.where ?? '');
  return match && { line: Number(match[1]), tupleColumn: match[2] };
}

/** The key of a row as JSON, told by the server from the bytes that were sent. Undefined where they are the trouble. */
export async function keyText(
  client: pg.ClientBase,
  plan: TablePlan,
  key: readonly (Buffer | null)[] | null,
): Promise<string | undefined> {
  if (key === null || key.length === 0) return undefined;
  try {
    const { rows } = await client.query(givenKeySql(plan), [...key]);
    return rows[0].key;
  } catch {
    return undefined;
  }
}

/** So many rows fit into what an error may carry. */
const REFUSED_MAX = 400;

/**
 * Finds the changes that the merge cannot take. The client stands right after the savepoint, and does so again. Key by
 * key first, which tells many at once; where each alone would pass, by halves: each try merges the changes up to an
 * ordinal.
 */
export async function findRefused(
  client: pg.ClientBase,
  plan: TablePlan,
  content: MergeContent,
  locator: RowLocator,
): Promise<{ where: RefusedRow; error: Refusal | null }> {
  if (plan.mode.kind === 'append') return { where: {}, error: null };
  const found = await refusedOneByOne(client, plan, content);
  const [first, error] = found.error
    ? [found.ordinals[0]!, found.error]
    : await firstRefusedByHalves(client, plan, content);
  const { rows } = await client.query(stagedKeySql(plan, first));
  const more = found.ordinals.slice(1).flatMap((ordinal) => {
    const place = locator.byOrdinal(ordinal);
    return place === null ? [] : [[place.seq, place.row] as const];
  });
  const where = { ...locator.byOrdinal(first), key: rows[0]?.key, ...(more.length === 0 ? {} : { more }) };
  return { where, error };
}

interface FoundOneByOne {
  /** Ascending. */
  ordinals: number[];
  /** Of the first; null where there is none. */
  error: Refusal | null;
}

async function refusedOneByOne(client: pg.ClientBase, plan: TablePlan, content: MergeContent): Promise<FoundOneByOne> {
  try {
    await client.query(refusedSql(plan, content, REFUSED_MAX));
    const { rows } = await client.query(REFUSED_ANSWER_SQL);
    return { ordinals: rows[0].refused.split(' ').filter(Boolean).map(Number), error: rows[0].error };
  } catch (error) {
    if (isRefusal(error) || /^(42|0A|55)/.test(sqlStateOf(error) ?? '')) return { ordinals: [], error: null };
    throw error;
  } finally {
    await client.query('rollback to savepoint merge');
  }
}

/** With its error, where one of the tries met it. */
async function firstRefusedByHalves(
  client: pg.ClientBase,
  plan: TablePlan,
  content: MergeContent,
): Promise<[ordinal: number, error: Refusal | null]> {
  const { rows: bounds } = await client.query(`select min(o) as low, max(o) as high from ${plan.stage.name}`);
  let low = Number(bounds[0].low);
  let high = Number(bounds[0].high);
  let error: Refusal | null = null;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const refusal = await refusalUpTo(client, plan, content, middle);
    if (refusal) [high, error] = [middle, refusal];
    else low = middle + 1;
  }
  return [low, error];
}

async function refusalUpTo(
  client: pg.ClientBase,
  plan: TablePlan,
  content: MergeContent,
  ordinal: number,
): Promise<Refusal | null> {
  try {
    await client.query(mergeSql(plan, { ...content, mayRepeatKeys: true }, ordinal).join('; '));
    return null;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return error;
  } finally {
    await client.query('rollback to savepoint merge');
  }
}

function reasonOf({ code }: Refusal): string {
  switch (code) {
    case '22001':
      return 'the text is longer than the column';
    case '22003':
      return 'the number is out of range';
    case '22007':
    case '22008':
      return 'the date or time is out of range';
    case '22021':
      return 'the text has bytes that the database cannot store, such as a zero';
    case '22P02':
    case '22P03':
      return 'the value does not have the form of the column’s type';
    case '23502':
      return 'NULL in a column that forbids it';
    case '23503':
      return 'the row that a foreign key names is missing';
    case '23505':
      return 'another row holds the same value of a unique constraint; where rows exchange values it must be DEFERRABLE INITIALLY DEFERRED';
    case '23514':
      return 'a check constraint fails';
    default:
      return 'the server does not take the value';
  }
}

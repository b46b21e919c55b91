import { createHash } from 'node:crypto';
import { type BeforeImage, type TableShape, UrutauError } from '@urutau/sdk';
import { quoteIdent } from '../connection.ts';
import { APPEND_COLUMNS, OLD_PREFIX } from './append-columns.ts';
import { type ColumnPlan, columnPlan, kindOfField } from './column-plan.ts';
import type { TargetName } from './config.ts';
import type { Target } from './target.ts';

/** What a stream's rows become in the target, decided once when the stream opens. */
export interface TablePlan {
  /** The name that the host uses. */
  readonly table: string;
  readonly target: TargetName;
  readonly mode: Mode;
  /** In the order of the wire's fields. */
  readonly columns: readonly ColumnPlan[];
  /** Positions of the key's columns among them, in key order. */
  readonly key: readonly number[];
  readonly before: BeforeImage;
  /** Positions of the columns whose value before the change an append table keeps. */
  readonly oldColumns: readonly number[];
  readonly stage: Stage;
}

export type Mode = { kind: 'upsert' } | { kind: 'append'; onDelete: 'record' | 'skip' };

/** A temporary table that empties itself at the end of each transaction. */
export interface Stage {
  /** With its schema, quoted. */
  readonly name: string;
  readonly create: string;
}

/** Throws `schema-unsupported` naming every column of the wire that the target does not take. */
export function tablePlan({ table, target, mode, shape, existing }: TablePlanOptions): TablePlan {
  const problems: string[] = [];
  const columns = shape.fields.flatMap((field) => {
    const column = existing.columns.get(field.name);
    const plan = column && columnPlan(field, column);
    if (column === undefined) problems.push(`column ${field.name} is missing`);
    else if (!plan) problems.push(`column ${field.name}: ${column.formatted} does not hold ${kindOfField(field)}`);
    return plan ? [plan] : [];
  });
  if (mode.kind === 'upsert' && shape.primaryKey.length === 0) problems.push('the rows have no key to upsert by');
  if (problems.length > 0) {
    throw new UrutauError('schema-unsupported', `${target.full}: ${problems.join('; ')}`, { table });
  }
  const key = shape.primaryKey.map((name) => shape.fields.findIndex((field) => field.name === name));
  const oldColumns = mode.kind === 'upsert' ? [] : oldColumnsOf(shape);
  const plan = { table, target, mode, columns, key, before: shape.before, oldColumns };
  return { ...plan, stage: stageOf(plan) };
}

export interface TablePlanOptions {
  table: string;
  target: TargetName;
  mode: Mode;
  shape: TableShape;
  existing: Target;
}

/** Positions of the columns that the before-image holds. */
export function oldColumnsOf({ before, fields, primaryKey }: TableShape): number[] {
  return [...fields.keys()].filter((position) => {
    return before === 'full' || (before === 'key' && primaryKey.includes(fields[position]!.name));
  });
}

/** Names and staged types of everything that a tuple carries after its prefix, in order. */
export function tupleColumns({ columns, mode, oldColumns }: Omit<TablePlan, 'stage'>): ColumnPlan[] {
  if (mode.kind === 'upsert') return [...columns];
  const old = oldColumns.map((position) => ({
    ...columns[position]!,
    name: OLD_PREFIX + columns[position]!.name,
  }));
  return [...columns, ...APPEND_COLUMNS, ...old];
}

/** Named after all that it holds, so that a table whose shape changed does not meet its old staging table. */
function stageOf(plan: Omit<TablePlan, 'stage'>): Stage {
  const prefix = plan.mode.kind === 'upsert' ? 'o bigint, d boolean, ' : '';
  const columns = tupleColumns(plan).map(({ stageType }, index) => `c${index} ${stageType}`);
  const definition = `(${prefix}${columns.join(', ')})`;
  const hash = createHash('sha256').update(`${plan.target.full}\0${definition}`).digest('hex').slice(0, 16);
  const name = `urutau_stage_${hash}`;
  return {
    name: `pg_temp.${quoteIdent(name)}`,
    create: `create temporary table ${quoteIdent(name)} ${definition} on commit delete rows`,
  };
}

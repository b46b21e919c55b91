import { quoteIdent } from '../connection.ts';
import type { ColumnPlan } from './column-plan.ts';
import { type TablePlan, tupleColumns } from './table-plan.ts';

/** `"schema"."table"` */
export function targetSql({ target }: Pick<TablePlan, 'target'>): string {
  return `${quoteIdent(target.schema)}.${quoteIdent(target.table)}`;
}

export function copyIntoStage({ stage }: TablePlan): string {
  return `copy ${stage.name} from stdin (format binary)`;
}

export function copyIntoTarget(plan: TablePlan): string {
  return `copy ${targetSql(plan)} (${columnList(plan)}) from stdin (format binary)`;
}

/** A COPY straight into the target can neither cast nor order. */
export function canCopyIntoTarget(plan: TablePlan): boolean {
  return plan.mode.kind === 'append' && tupleColumns(plan).every(({ cast }) => cast === null);
}

/** Everything staged, in the form in which it was staged. */
export function copyOutOfStage({ stage }: TablePlan): string {
  return `copy ${stage.name} to stdout (format binary)`;
}

export interface MergeContent {
  /** False when every staged change is an insert of one phase: each key is then there once, save for a repeat. */
  mayRepeatKeys: boolean;
  hasDeletes: boolean;
}

/**
 * Brings what is staged into the target. In upsert the last change of a key wins: the keys whose last change is a
 * delete go, the others are upserted. `ordinalMax` takes the changes up to one ordinal alone.
 */
export function mergeSql(plan: TablePlan, content: MergeContent, ordinalMax?: number): string[] {
  if (plan.mode.kind === 'append') {
    return [`insert into ${targetSql(plan)} (${columnList(plan)}) select ${values(plan)} from ${plan.stage.name}`];
  }
  const bound = ordinalMax === undefined ? '' : ` where o <= ${ordinalMax}`;
  const key = keyValues(plan);
  const last = `from ${plan.stage.name}${bound} order by ${key}, o desc`;
  const deletes = content.hasDeletes
    ? [deleteSql(plan, `select distinct on (${key}) ${keyNames(plan)}, d ${last}`)]
    : [];
  const staged = content.mayRepeatKeys
    ? `(select distinct on (${key}) * ${last}) s where not d`
    : `${plan.stage.name}${bound}`;
  return [...deletes, upsertSql(plan, staged)];
}

export function truncateSql(plan: Pick<TablePlan, 'target'>, mayTruncate: boolean): string {
  return mayTruncate ? `truncate ${targetSql(plan)}` : `delete from ${targetSql(plan)}`;
}

/** Whether TRUNCATE is granted, and no other table's foreign key forbids it. */
export const MAY_TRUNCATE_SQL = `
  select has_table_privilege(c.oid, 'TRUNCATE') and not exists (
           select from pg_constraint f where f.contype = 'f' and f.confrelid = c.oid and f.conrelid <> c.oid) as may
    from (select $1::regclass as oid) c`;

/** Reads what `refusedSql` has found: ordinals, and the fields of the first one's error. */
export const REFUSED_ANSWER_SQL =
  "select current_setting('urutau.refused') as refused, nullif(current_setting('urutau.refusal'), '')::json as error";

/**
 * Merges the staged changes key by key, and notes those that a value or a constraint forbids, at most `max` of them
 * (`REFUSED_ANSWER_SQL`). It is to be rolled back.
 */
export function refusedSql(plan: TablePlan, { hasDeletes }: MergeContent, max: number): string {
  const key = keyValues(plan);
  const [deletes] = hasDeletes ? mergeSql(plan, { mayRepeatKeys: true, hasDeletes }) : [];
  const each = upsertSql(
    plan,
    `(select ${tupleColumns(plan)
      .map((_, index) => `r.c${index}`)
      .join(', ')}) s(${names(plan)})`,
  );
  // A column may have the name of a variable.
  const block = `#variable_conflict use_column
    declare r record; refused text := ''; refusals int := 0; error text := ''; state text; con text; col text;
    begin
      ${deletes === undefined ? '' : `${deletes};`}
      for r in select * from (select distinct on (${key}) * from ${plan.stage.name} order by ${key}, o desc) s where not d order by o loop
        begin
          ${each};
        exception when data_exception or integrity_constraint_violation then
          refused := refused || ' ' || r.o;
          refusals := refusals + 1;
          if refusals = 1 then
            get stacked diagnostics state = returned_sqlstate, con = constraint_name, col = column_name;
            error := json_build_object('code', state, 'constraint', nullif(con, ''), 'column', nullif(col, ''))::text;
          end if;
          exit when refusals >= ${max};
        end;
      end loop;
      perform set_config('urutau.refused', refused, true), set_config('urutau.refusal', error, true);
    end`;
  return `do ${literal(block)}`;
}

function names(plan: TablePlan): string {
  return tupleColumns(plan)
    .map((_, index) => `c${index}`)
    .join(', ');
}

/** The key of one staged change as JSON text. */
export function stagedKeySql(plan: TablePlan, ordinal: number): string {
  return `select ${keyJson(plan, (position) => `c${position}`)} as key from ${plan.stage.name} where o = ${ordinal}`;
}

/** The same of values given as parameters $1, $2, … in key order. */
export function givenKeySql(plan: TablePlan): string {
  return `select ${keyJson(plan, (_, index) => `$${index + 1}::${plan.columns[plan.key[index]!]!.stageType}`)} as key`;
}

function keyJson({ key, columns }: TablePlan, value: (position: number, index: number) => string): string {
  const pairs = key.map((position, index) => `${literal(columns[position]!.name)}, ${value(position, index)}`);
  return `jsonb_build_object(${pairs.join(', ')})::text`;
}

/** OVERRIDING: a key that the target would generate is the source's. */
function upsertSql(plan: TablePlan, staged: string): string {
  const { columns, key } = plan;
  const rest = columns
    .filter((column, position) => !key.includes(position) || hasEqualForms(column))
    .map(({ name }) => quoteIdent(name));
  const action =
    rest.length === 0 ? 'nothing' : `update set ${rest.map((name) => `${name} = excluded.${name}`).join(', ')}`;
  const keys = key.map((position) => quoteIdent(columns[position]!.name)).join(', ');
  return (
    `insert into ${targetSql(plan)} (${columnList(plan)}) overriding system value ` +
    `select ${values(plan)} from ${staged} on conflict (${keys}) do ${action}`
  );
}

/** Whether two values may be equal and yet not the same, such as -0 and 0, 1.0 and 1.00: a key may turn from one into the other. */
function hasEqualForms({ form, stageType, cast }: ColumnPlan): boolean {
  const isFloat = form === 'float4' || form === 'float8';
  return isFloat || form === 'jsonb' || stageType === 'numeric' || stageType === 'citext' || cast !== null;
}

function deleteSql(plan: TablePlan, lastChanges: string): string {
  const { columns, key } = plan;
  const matches = key.map((position) => `t.${quoteIdent(columns[position]!.name)} = ${value(plan, position, 's.')}`);
  return `delete from ${targetSql(plan)} t using (${lastChanges}) s where s.d and ${matches.join(' and ')}`;
}

function columnList(plan: TablePlan): string {
  return tupleColumns(plan)
    .map(({ name }) => quoteIdent(name))
    .join(', ');
}

function values(plan: TablePlan): string {
  return tupleColumns(plan)
    .map(({ cast }, index) => (cast === null ? `c${index}` : `cast(c${index} as ${cast})`))
    .join(', ');
}

function keyNames({ key }: TablePlan): string {
  return key.map((position) => `c${position}`).join(', ');
}

function keyValues(plan: TablePlan): string {
  return plan.key.map((position) => value(plan, position, '')).join(', ');
}

function value({ columns }: TablePlan, position: number, prefix: string): string {
  const { cast } = columns[position]!;
  return cast === null ? `${prefix}c${position}` : `cast(${prefix}c${position} as ${cast})`;
}

function literal(text: string): string {
  return `'${text.replace(/'/g, "''")}'`;
}

import {
  type EnsureAnswer,
  type EnsureRequest,
  encodeSchema,
  type Failure,
  rowSchema,
  type TableShape,
  UrutauError,
} from '@urutau/sdk';
import type { Field } from 'apache-arrow';
import type pg from 'pg';
import { quoteIdent } from '../connection.ts';
import { APPEND_COLUMNS, OLD_PREFIX } from './append-columns.ts';
import { checkpointFailures, hasSchema } from './checkpoints.ts';
import { columnPlan, kindOfField, sourceTypeOf, typeForKind } from './column-plan.ts';
import type { TargetName } from './config.ts';
import { targetSql } from './merge.ts';
import { type Mode, oldColumnsOf } from './table-plan.ts';
import { loadTarget, resolveType, type Target, type TargetColumn } from './target.ts';

/** Waiting longer for the lock of an ALTER would hold up everyone behind it. */
const LOCK_TIMEOUT = '30s';

/**
 * Makes the target ready for rows of `shape`, or says everything that is in the way at once (ENS-4). With `check` it
 * only says what it would do.
 */
export async function ensureTarget(
  client: pg.ClientBase,
  target: TargetName,
  request: EnsureRequest,
  shape: TableShape,
): Promise<EnsureAnswer> {
  const failures = requestFailures(request, shape);
  const mode = modeOf(request);
  const existing = await loadTarget(client, target);
  const wanted = await wantedColumns(client, mode, request, shape, failures);
  if (existing === null) {
    failures.push(...(await creationFailures(client, target, request)));
  } else {
    failures.push(...existingFailures(existing, target, mode, request, shape, wanted));
  }
  failures.push(...(await checkpointFailures(client)));
  if (failures.length > 0) throw preconditionFailed(request.table, target, failures);

  const statements =
    existing === null
      ? await createStatements(client, target, mode, shape, wanted)
      : addStatements(existing, target, wanted);
  if (!request.check) await runAll(client, statements);
  const isThere = existing !== null || !request.check;
  return {
    created: existing === null && !request.check,
    empty: isThere ? await isEmpty(client, target) : true,
    changes: existing === null ? [`create table ${target.full}`] : statements.map(({ says }) => says),
    schema: Buffer.from(encodeSchema(rowSchema(shape))).toString('base64'),
  };
}

/** How rows are written, as the pipeline asks for. */
export function modeOf({ writeMode, options }: Pick<EnsureRequest, 'writeMode' | 'options'>): Mode {
  if (writeMode === 'upsert') return { kind: 'upsert' };
  return { kind: 'append', onDelete: options['onDelete'] === 'skip' ? 'skip' : 'record' };
}

interface WantedColumn {
  name: string;
  /** SQL type for a column that is to be made. */
  type: string;
  /** Null for a column that the sink fills from beside the row. */
  field: Field | null;
  /** Whether an existing column of this type can take the values. */
  isHeldBy(column: TargetColumn): boolean;
}

interface Statement {
  sql: string;
  says: string;
}

function requestFailures({ writeMode, primaryKey, partitionBy, options }: EnsureRequest, shape: TableShape): Failure[] {
  const failures: Failure[] = [];
  if (writeMode === 'append-idempotent') {
    failures.push({
      problem: 'write mode append-idempotent is not carried out by this sink',
      remedy: 'Use append: this sink commits rows and position together, so nothing is written twice.',
    });
  }
  if (writeMode === 'upsert' && primaryKey.length === 0) {
    failures.push({ problem: 'upsert needs a key', remedy: 'Name the key with `primaryKey`, or use append.' });
  }
  for (const name of primaryKey) {
    if (shape.fields.some((field) => field.name === name)) continue;
    failures.push({ problem: `key column ${name} is not among the rows' columns`, remedy: 'Correct `primaryKey`.' });
  }
  if (partitionBy?.length) {
    failures.push({
      problem: 'partitionBy is not carried out by this sink',
      remedy: 'Leave it out, and create the table partitioned yourself where you want that.',
    });
  }
  const { onDelete } = options;
  if (onDelete !== undefined && onDelete !== 'record' && onDelete !== 'skip') {
    failures.push({ problem: 'onDelete is neither record nor skip', remedy: 'Say `onDelete: record` or `skip`.' });
  }
  return failures;
}

async function wantedColumns(
  client: pg.ClientBase,
  mode: Mode,
  { options }: EnsureRequest,
  shape: TableShape,
  failures: Failure[],
): Promise<WantedColumn[]> {
  const rows: WantedColumn[] = [];
  for (const field of shape.fields) {
    const type = (await sourcesOwnType(client, field, options)) ?? typeForKind(field);
    if (type === null) {
      failures.push({
        problem: `column ${field.name}: kind ${kindOfField(field)} is not written by this sink`,
        remedy: 'Take the table out of the pipeline file, or name a sink that writes this kind.',
      });
      continue;
    }
    rows.push({ name: field.name, type, field, isHeldBy: (column) => columnPlan(field, column) !== null });
  }
  if (mode.kind === 'upsert') return rows;
  const beside = APPEND_COLUMNS.map(({ name, stageType }) => ({
    name,
    type: stageType,
    field: null,
    isHeldBy: ({ formatted }: TargetColumn) => formatted === stageType,
  }));
  const old = oldColumnsOf(shape).flatMap((position) => {
    const row = rows.find(({ field }) => field === shape.fields[position]);
    return row ? [{ ...row, name: OLD_PREFIX + row.name }] : [];
  });
  const added = [...beside, ...old];
  const taken = new Set(rows.map(({ name }) => name));
  for (const { name } of added.filter(({ name }) => taken.has(name))) {
    failures.push({
      problem: `column ${name} of the table has the name of a column that append adds`,
      remedy: 'Rename the column at the source, or say `writeMode: upsert`.',
    });
  }
  return [...rows, ...added];
}

/** A mirror of the same vendor keeps the source's own types, as far as this database has them. */
async function sourcesOwnType(
  client: pg.ClientBase,
  field: Field,
  options: Record<string, unknown>,
): Promise<string | null> {
  const text = options['source'] === 'postgres' ? sourceTypeOf(field) : undefined;
  if (text === undefined) return null;
  const type = await resolveType(client, text);
  return type !== null && columnPlan(field, type) !== null ? text : null;
}

async function creationFailures(
  client: pg.ClientBase,
  { schema, full }: TargetName,
  request: EnsureRequest,
): Promise<Failure[]> {
  if (!request.createIfNotExists) {
    return [{ problem: `table ${full} does not exist`, remedy: 'Create it, or say `createIfNotExists: true`.' }];
  }
  const { rows } = await client.query(
    `select (select has_schema_privilege(oid, 'CREATE') from pg_namespace where nspname = $1) as "inSchema",
            has_database_privilege(current_database(), 'CREATE') as "inDatabase"`,
    [schema],
  );
  const [{ inSchema, inDatabase }] = rows;
  if (inSchema ?? inDatabase) return [];
  return [
    inSchema === null
      ? {
          problem: `schema ${schema} does not exist, and the user may not create it`,
          remedy: `Create it, or: GRANT CREATE ON DATABASE … TO the sink's user.`,
        }
      : {
          problem: `the user may not create tables in schema ${schema}`,
          remedy: `GRANT CREATE ON SCHEMA ${quoteIdent(schema)} TO the sink's user.`,
        },
  ];
}

function existingFailures(
  existing: Target,
  target: TargetName,
  mode: Mode,
  { evolve }: EnsureRequest,
  shape: TableShape,
  wanted: readonly WantedColumn[],
): Failure[] {
  if (existing.notATable !== null) {
    return [
      {
        problem: `${target.full} is ${existing.notATable}`,
        remedy: 'Name an ordinary or partitioned table as the target.',
      },
    ];
  }
  const alter = `ALTER TABLE ${targetSql({ target })}`;
  const failures: Failure[] = [];
  if (existing.missingGrants.length > 0) {
    const grants = existing.missingGrants.join(', ');
    failures.push({
      problem: `the user lacks ${grants} on ${target.full}`,
      remedy: `GRANT ${grants} ON ${targetSql({ target })} TO the sink's user.`,
    });
  }
  for (const column of wanted) {
    const there = existing.columns.get(column.name);
    if (there) failures.push(...columnFailures(column, there, alter, mode, shape));
    else if (!evolve) {
      failures.push({
        problem: `column ${column.name} is missing`,
        remedy: `${alter} ADD COLUMN ${quoteIdent(column.name)} ${column.type}.`,
      });
    }
  }
  const names = new Set(wanted.map(({ name }) => name));
  for (const { name, notNull, hasDefault, generated } of existing.columns.values()) {
    if (names.has(name) || !notNull || hasDefault || generated) continue;
    failures.push({
      problem: `column ${name} is not among the rows' columns, forbids NULL and has no default`,
      remedy: `${alter} ALTER COLUMN ${quoteIdent(name)} DROP NOT NULL; or give it a default.`,
    });
  }
  if (mode.kind === 'upsert' && !hasUniqueKey(existing, shape.primaryKey)) {
    const key = shape.primaryKey.map(quoteIdent).join(', ');
    failures.push({
      problem: `no primary key or unique constraint on exactly (${shape.primaryKey.join(', ')}), which upsert needs`,
      remedy: `${alter} ADD PRIMARY KEY (${key}); a constraint that is partial or deferrable does not serve.`,
    });
  }
  return failures;
}

function columnFailures(
  { name, type, field, isHeldBy }: WantedColumn,
  there: TargetColumn,
  alter: string,
  mode: Mode,
  shape: TableShape,
): Failure[] {
  const failures: Failure[] = [];
  const isKey = shape.primaryKey.includes(name);
  const column = quoteIdent(name);
  if (there.generated) {
    failures.push({
      problem: `column ${name} is generated by the target`,
      remedy: `${alter} ALTER COLUMN ${column} DROP EXPRESSION.`,
    });
  } else if (there.identityAlways && !isKey) {
    failures.push({
      problem: `column ${name} is GENERATED ALWAYS AS IDENTITY`,
      remedy: `${alter} ALTER COLUMN ${column} SET GENERATED BY DEFAULT.`,
    });
  }
  if (!isHeldBy(there)) {
    const kind = field ? ` of kind ${kindOfField(field)}` : '';
    failures.push({
      problem: `column ${name}: ${there.formatted} does not hold every value${kind}`,
      remedy: `${alter} ALTER COLUMN ${column} TYPE ${type}.`,
    });
  }
  if (isKey && mode.kind === 'upsert' && there.type === 'citext' && field && sourceTypeOf(field) !== there.formatted) {
    failures.push({
      problem: `key column ${name} is citext, for which keys that differ in case only are the same`,
      remedy: `${alter} ALTER COLUMN ${column} TYPE ${type}.`,
    });
  }
  if (there.notNull && mode.kind === 'append' && (field === null || !isKey || name.startsWith(OLD_PREFIX))) {
    failures.push({
      problem: `column ${name} forbids NULL, and in append a change may lack it`,
      remedy: `${alter} ALTER COLUMN ${column} DROP NOT NULL.`,
    });
  }
  return failures;
}

function hasUniqueKey({ uniqueKeys }: Target, key: readonly string[]): boolean {
  return uniqueKeys.some((columns) => columns.length === key.length && key.every((name) => columns.includes(name)));
}

/** NOT NULL on the key alone: what the source forbids it forbids there, and a delete brings nothing but the key. */
async function createStatements(
  client: pg.ClientBase,
  target: TargetName,
  mode: Mode,
  { primaryKey }: TableShape,
  wanted: readonly WantedColumn[],
): Promise<Statement[]> {
  const columns = wanted.map(({ name, type }) => `${quoteIdent(name)} ${type}`);
  const key = mode.kind === 'upsert' ? [`primary key (${primaryKey.map(quoteIdent).join(', ')})`] : [];
  const schema = {
    sql: `create schema if not exists ${quoteIdent(target.schema)}`,
    says: `create schema ${target.schema}`,
  };
  return [
    // Even IF NOT EXISTS asks for the right to create schemas.
    ...((await hasSchema(client, target.schema)) ? [] : [schema]),
    {
      sql: `create table ${targetSql({ target })} (${[...columns, ...key].join(', ')})`,
      says: `create table ${target.full}`,
    },
  ];
}

function addStatements(existing: Target, target: TargetName, wanted: readonly WantedColumn[]): Statement[] {
  return wanted
    .filter(({ name }) => !existing.columns.has(name))
    .map(({ name, type }) => ({
      sql: `alter table ${targetSql({ target })} add column ${quoteIdent(name)} ${type}`,
      says: `add column ${name}`,
    }));
}

async function runAll(client: pg.ClientBase, statements: readonly Statement[]): Promise<void> {
  if (statements.length === 0) return;
  try {
    await client.query(
      `begin; set local lock_timeout = '${LOCK_TIMEOUT}'; ${statements.map(({ sql }) => sql).join('; ')}; commit`,
    );
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

async function isEmpty(client: pg.ClientBase, target: TargetName): Promise<boolean> {
  const { rows } = await client.query(`select not exists (select from ${targetSql({ target })}) as empty`);
  return rows[0].empty;
}

function preconditionFailed(table: string, target: TargetName, failures: readonly Failure[]): UrutauError {
  const problems = failures.map(({ problem }) => problem).join('; ');
  return new UrutauError('precondition-failed', `${target.full} cannot take the rows: ${problems}`, {
    table,
    remedy: failures.map(({ remedy }) => remedy).join(' '),
    failures: failures.map((failure) => ({ ...failure, table })),
  });
}

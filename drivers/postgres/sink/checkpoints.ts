import { type Failure, UrutauError } from '@urutau/sdk';
import type pg from 'pg';
import { quoteIdent } from '../connection.ts';

/*
 * One row for each writer and target. The row moves in the transaction of the rows that it speaks of, so that what it
 * says has always happened, and it is the fence: whoever finds another text than the one it came from writes nothing.
 */

const CREATE_SQL = `
  create table if not exists urutau.checkpoints (
    writer text not null,
    target text not null,
    slice text not null default '',
    stream bigint not null,
    checkpoint text not null,
    updated_at timestamptz not null,
    primary key (writer, target, slice))`;

const FIRST_SQL = `
  insert into urutau.checkpoints (writer, target, stream, checkpoint, updated_at)
  values ($1, $2, $3, $4, clock_timestamp()) on conflict do nothing`;

const NEXT_SQL = `
  update urutau.checkpoints set stream = $3, checkpoint = $4, updated_at = clock_timestamp()
   where writer = $1 and target = $2 and slice = '' and checkpoint = $5`;

const READ_SQL = `select target, checkpoint from urutau.checkpoints where writer = $1 and slice = '' and target = any($2)`;

export async function createCheckpointTable(client: pg.ClientBase): Promise<void> {
  if (await hasCheckpointTable(client)) return;
  try {
    // Even IF NOT EXISTS asks for the right to create schemas, which whoever was given this one need not have.
    if (!(await hasSchema(client, 'urutau'))) await client.query('create schema if not exists urutau');
    await client.query(CREATE_SQL);
  } catch (error) {
    // IF NOT EXISTS does not keep two creators from meeting in the catalog; the other one's table is as good.
    if (!(await hasCheckpointTable(client))) throw error;
  }
}

/** Why this user could not keep checkpoints here. */
export async function checkpointFailures(client: pg.ClientBase): Promise<Failure[]> {
  const { rows } = await client.query(RIGHTS_SQL);
  const [{ user, database, inSchema, onTable, inDatabase }] = rows;
  if (onTable ?? inSchema ?? inDatabase) return [];
  const grant =
    inSchema === null
      ? `CREATE ON DATABASE ${quoteIdent(database)}`
      : onTable === null
        ? 'USAGE, CREATE ON SCHEMA urutau'
        : 'SELECT, INSERT, UPDATE, DELETE ON urutau.checkpoints';
  return [
    {
      problem: 'the user may not keep positions in urutau.checkpoints',
      remedy: `Run GRANT ${grant} TO ${quoteIdent(user)}.`,
    },
  ];
}

const RIGHTS_SQL = `
  select current_user as user, current_database() as database, has_database_privilege(current_database(), 'CREATE') as "inDatabase",
         has_schema_privilege(n.oid, 'USAGE') and has_schema_privilege(n.oid, 'CREATE') as "inSchema",
         case when c.oid is not null then has_schema_privilege(n.oid, 'USAGE') and has_table_privilege(c.oid, 'SELECT')
           and has_table_privilege(c.oid, 'INSERT') and has_table_privilege(c.oid, 'UPDATE') end as "onTable"
    from (select) one
    left join pg_namespace n on n.nspname = 'urutau'
    left join pg_class c on c.relnamespace = n.oid and c.relname = 'checkpoints'`;

/** The texts by target. A table that is not there holds none; any other failure is an error, never none (CMT-2). */
export async function readCheckpoints(
  client: pg.ClientBase,
  writer: string,
  targets: string[],
): Promise<Map<string, string>> {
  if (!(await hasCheckpointTable(client))) return new Map();
  const { rows } = await client.query(READ_SQL, [writer, targets]);
  return new Map(rows.map(({ target, checkpoint }): [string, string] => [target, checkpoint]));
}

export interface Move {
  writer: string;
  target: string;
  stream: number;
  checkpoint: string;
  previous: string | null;
}

/**
 * Moves the checkpoint inside the caller's transaction, or throws `fenced` with the stored one (CMT-7). Both statements
 * wait for a transaction that moves the same row and then see its outcome, so that of two only one succeeds.
 */
export async function moveCheckpoint(client: pg.ClientBase, table: string, move: Move): Promise<void> {
  const { writer, target, stream, checkpoint, previous } = move;
  const values = [writer, target, stream, checkpoint];
  const { rowCount } = await (previous === null
    ? client.query(FIRST_SQL, values)
    : client.query(NEXT_SQL, [...values, previous]));
  if (rowCount === 1) return;
  const { rows } = await client.query(READ_SQL, [writer, [target]]);
  const stored: string | null = rows[0]?.checkpoint ?? null;
  throw new UrutauError('fenced', `the stored checkpoint of ${target} is not the one that this commit follows`, {
    table,
    stream,
    stored,
  });
}

/** The targets for which this writer has a checkpoint. */
export async function listCheckpoints(client: pg.ClientBase, writer: string): Promise<string[]> {
  if (!(await hasCheckpointTable(client))) return [];
  const { rows } = await client.query('select distinct target from urutau.checkpoints where writer = $1 order by 1', [
    writer,
  ]);
  return rows.map(({ target }) => target);
}

/** Removes them, and the table and its schema when nothing is left in them. Answers whether the table went. */
export async function removeCheckpoints(client: pg.ClientBase, writer: string, targets: string[]): Promise<boolean> {
  await client.query('begin');
  try {
    await client.query('lock table urutau.checkpoints in access exclusive mode');
    await client.query('delete from urutau.checkpoints where writer = $1 and target = any($2)', [writer, targets]);
    const { rows } = await client.query('select exists (select from urutau.checkpoints) as used');
    if (!rows[0].used) {
      await client.query('drop table urutau.checkpoints');
      const others = await client.query(
        `select exists (select from pg_class where relnamespace = 'urutau'::regnamespace) as used`,
      );
      if (!others.rows[0].used) await client.query('drop schema urutau');
    }
    await client.query('commit');
    return !rows[0].used;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

export async function hasSchema(client: pg.ClientBase, schema: string): Promise<boolean> {
  const { rows } = await client.query('select exists (select from pg_namespace where nspname = $1) as there', [schema]);
  return rows[0].there;
}

async function hasCheckpointTable(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query(`select to_regclass('urutau.checkpoints') is not null as there`);
  return rows[0].there;
}

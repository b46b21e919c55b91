import type pg from 'pg';
import type { RowImage } from '../compare.ts';
import type { OracleSource, SourceWriter } from '../ports.ts';
import { type Column, type ColumnKind, TABLES, type TableName, valuesAt } from '../tables.ts';
import type { Statement, Transaction } from '../transaction.ts';
import { connected, disconnected, isOutage } from './connection.ts';
import { keyIs, PARAMETER_TYPES, parameter } from './parameters.ts';
import { readRows } from './rows.ts';

/** numeric(20,0) holds what 64 bits without a sign hold: Postgres has no such type. */
const CREATE = `
  create table accounts (
    id numeric(20,0) primary key, rev bigint not null, owner text, balance numeric(20,4), opened timestamptz,
    active boolean, score double precision);
  create table items (sku text primary key, rev bigint not null, title text, quantity integer, price numeric(12,2));
  create table events (
    shard integer, seq bigint, rev bigint not null, kind text, at timestamptz, payload text, primary key (shard, seq));
  alter table events alter payload set storage external;
  create table oracle_lanes (lane integer primary key, transaction bigint not null);`;

export class PostgresSource implements OracleSource {
  readonly #uri: string;
  #reader: pg.Client | null = null;

  constructor(uri: string) {
    this.#uri = uri;
  }

  async createTables({ lanes }: { lanes: number }): Promise<void> {
    const client = await this.#connected();
    await client.query(CREATE);
    await client.query('insert into oracle_lanes select lane, 0 from generate_series(0, $1::int - 1) lane', [lanes]);
  }

  async connect(lane: number): Promise<SourceWriter> {
    return new PostgresWriter(await connected(this.#uri), lane);
  }

  isOutage(error: unknown): boolean {
    return isOutage(error);
  }

  nameOf(table: TableName): string {
    return `public.${table}`;
  }

  async *rows(table: TableName): AsyncGenerator<RowImage> {
    yield* readRows(await this.#connected(), table, TABLES[table]);
  }

  async position(): Promise<string> {
    const client = await this.#connected();
    const { rows } = await client.query(`select (pg_current_wal_insert_lsn() - '0/0')::text as lsn`);
    const bytes = Buffer.alloc(16);
    bytes.writeBigUInt64BE(BigInt(rows[0].lsn));
    return bytes.toString('base64');
  }

  /** A position is 16 bytes whose order is that of the log. */
  comparePositions(a: string, b: string): number {
    return Buffer.compare(Buffer.from(a, 'base64'), Buffer.from(b, 'base64'));
  }

  async close(): Promise<void> {
    await disconnected(this.#reader);
    this.#reader = null;
  }

  /** The server may have been restarted since the last question. */
  async #connected(): Promise<pg.Client> {
    try {
      await this.#reader?.query('select 1');
    } catch (error) {
      if (!isOutage(error)) throw error;
      await disconnected(this.#reader);
      this.#reader = null;
    }
    this.#reader ??= await connected(this.#uri);
    return this.#reader;
  }
}

class PostgresWriter implements SourceWriter {
  readonly #client: pg.Client;
  readonly #lane: number;

  constructor(client: pg.Client, lane: number) {
    this.#client = client;
    this.#lane = lane;
  }

  async run({ statements, end }: Transaction, number: number): Promise<void> {
    await this.#client.query('begin');
    await this.#client.query({
      name: 'mark',
      text: 'update oracle_lanes set transaction = $2 where lane = $1',
      values: [this.#lane, number],
    });
    for (const statement of statements) await this.#execute(statement);
    await this.#client.query(end);
  }

  /** The lock waits until a transaction of an older connection has ended, this way or that. */
  async lastCommitted(): Promise<number> {
    const { rows } = await this.#client.query('select transaction from oracle_lanes where lane = $1 for update', [
      this.#lane,
    ]);
    return Number(rows[0].transaction);
  }

  async close(): Promise<void> {
    await disconnected(this.#client);
  }

  async #execute(statement: Statement): Promise<void> {
    switch (statement.kind) {
      case 'insert':
        return this.#changes(statement.rows.length, insertQuery(statement));
      case 'update':
        return this.#changes(1, updateQuery(statement));
      case 'delete':
        return this.#changes(1, deleteQuery(statement));
      case 'savepoint':
        return void (await this.#client.query('savepoint s'));
      case 'undo-to-savepoint':
        return void (await this.#client.query('rollback to savepoint s'));
      case 'release-savepoint':
        return void (await this.#client.query('release savepoint s'));
    }
  }

  async #changes(rows: number, query: pg.QueryConfig): Promise<void> {
    const { rowCount } = await this.#client.query(query);
    if (rowCount !== rows) {
      throw new Error(
        `the source does not hold what the oracle knows: ${query.text} touched ${rowCount} rows of ${rows}`,
      );
    }
  }
}

type Of<K extends Statement['kind']> = Extract<Statement, { kind: K }>;

/** One array for each column, so that the text is the same for any number of rows. */
function insertQuery({ table: name, rows }: Of<'insert'>): pg.QueryConfig {
  const table = TABLES[name];
  const columns = [...table.key, ...table.columns];
  const values: (string | null)[][] = columns.map(() => []);
  for (const { code, rev, payload } of rows) {
    const row = [...table.partsOf(code), ...valuesAt(name, rev), ...(table.hasPayload ? [payload] : [])];
    for (const [index, value] of row.entries()) values[index]!.push(value);
  }
  const selected = columns.map(({ kind }, index) => stored(kind, `c${index}`));
  const arrays = columns.map(({ kind }, index) => `$${index + 1}::${PARAMETER_TYPES[kind]}[]`);
  return {
    name: `insert ${name}`,
    text: `insert into ${name} (${columns.map((column) => column.name).join(', ')})
           select ${selected.join(', ')} from unnest(${arrays.join(', ')}) as r(${columns.map((_, i) => `c${i}`).join(', ')})`,
    values,
  };
}

/** Mentions the key and the payload only where they change: a server writes again what is mentioned. */
function updateQuery({ table: name, code, to, rev, payload }: Of<'update'>): pg.QueryConfig {
  const table = TABLES[name];
  const moves = code !== to;
  const writesPayload = payload !== undefined;
  const set: [Column, string | null][] = [];
  if (moves) set.push(...zip(table.key, table.partsOf(to)));
  set.push(...zip(table.columns, valuesAt(name, rev)));
  if (writesPayload) set.push([table.columns.at(-1)!, payload]);
  const assignments = set.map(([{ name: column, kind }], i) => `${column} = ${stored(kind, parameter(i, kind))}`);
  return {
    name: `update ${name}${moves ? ' key' : ''}${writesPayload ? ' payload' : ''}`,
    text: `update ${name} set ${assignments.join(', ')} where ${keyIs(table, set.length)}`,
    values: [...set.map(([, value]) => value), ...table.partsOf(code)],
  };
}

function deleteQuery({ table: name, code }: Of<'delete'>): pg.QueryConfig {
  const table = TABLES[name];
  return {
    name: `delete ${name}`,
    text: `delete from ${name} where ${keyIs(table, 0)}`,
    values: table.partsOf(code),
  };
}

function stored(kind: ColumnKind, value: string): string {
  return kind === 'instant' ? `timestamptz 'epoch' + ${value} * interval '1 microsecond'` : value;
}

function zip<A, B>(a: readonly A[], b: readonly B[]): [A, B][] {
  return b.map((value, index) => [a[index]!, value]);
}

import type pg from 'pg';
import type { RowImage } from '../compare.ts';
import type { OracleDestination } from '../ports.ts';
import { type Code, TABLES, type TableName } from '../tables.ts';
import { connected, disconnected, isOutage } from './connection.ts';
import { keyIs } from './parameters.ts';
import { readRows } from './rows.ts';

export class PostgresDestination implements OracleDestination {
  readonly #uri: string;
  #client: pg.Client | null = null;

  constructor(uri: string) {
    this.#uri = uri;
  }

  async *rows(table: TableName): AsyncGenerator<RowImage> {
    yield* readRows(await this.#connected(), table, TABLES[table]);
  }

  /** Null while the server is away, too. */
  async revOf(table: TableName, code: Code): Promise<number | null> {
    const { partsOf } = TABLES[table];
    try {
      const client = await this.#connected();
      const { rows } = await client.query(
        `select rev::text from ${table} where ${keyIs(TABLES[table], 0)}`,
        partsOf(code),
      );
      return rows[0] ? Number(rows[0].rev) : null;
    } catch (error) {
      const isNotMadeYet = (error as { code?: string }).code === '42P01';
      if (isNotMadeYet) return null;
      if (!isOutage(error)) throw error;
      await this.close();
      return null;
    }
  }

  async close(): Promise<void> {
    await disconnected(this.#client);
    this.#client = null;
  }

  async #connected(): Promise<pg.Client> {
    this.#client ??= await connected(this.#uri);
    return this.#client;
  }
}

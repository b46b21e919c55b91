import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { type PostgresAddress, postgresUri } from './postgres.ts';

export interface FreshDatabase {
  readonly name: string;
  /** `postgresql://…`, for a pipeline file. */
  readonly uri: string;
  /** Connected; ends with the test. */
  readonly client: pg.Client;
  /** One more connection, which ends with the test too. */
  connect(): Promise<pg.Client>;
  /** Drops it before the test ends. */
  drop(): Promise<void>;
}

/**
 * An empty database with a name of its own. When the test ends it goes, with its replication slots and with whoever is
 * still connected to it. `prefix` starts the name: lower-case letters, digits and underscores.
 */
export async function freshDatabase(
  server: PostgresAddress,
  prefix: string,
  /** Takes what removes it. */
  atEnd: (cleanup: () => Promise<void>) => void = onTestFinished,
): Promise<FreshDatabase> {
  const name = `${prefix}_${randomBytes(6).toString('hex')}`;
  await asAdministrator(server, (admin) => admin.query(`create database ${pg.escapeIdentifier(name)}`));
  let dropped: Promise<void> | undefined;
  function drop(): Promise<void> {
    dropped ??= asAdministrator(server, (admin) => dropDatabase(admin, name));
    return dropped;
  }
  atEnd(() => drop().catch(unlessServerGone));

  const uri = postgresUri(server, name);
  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: uri });
    // A test may kill the server; a query in flight rejects by itself, and an idle connection is nobody's failure.
    client.on('error', () => {});
    await client.connect();
    atEnd(() => client.end());
    return client;
  }
  return { name, uri, client: await connect(), connect, drop };
}

async function asAdministrator(server: PostgresAddress, work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client({ connectionString: postgresUri(server) });
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}

/** A test may end with its own server stopped; the database goes with it. */
function unlessServerGone(error: Error & { code?: string }): void {
  if (error.code !== 'ECONNREFUSED') throw error;
}

/** Bars the door first: a driver that reconnects would take its slot again between two statements. */
async function dropDatabase(admin: pg.Client, name: string): Promise<void> {
  await admin.query(`alter database ${pg.escapeIdentifier(name)} with allow_connections false`);
  const waitMs = 10_000;
  await admin.query('select pg_terminate_backend(pid, $2) from pg_stat_activity where datname = $1', [name, waitMs]);
  await admin.query('select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = $1', [name]);
  await admin.query(`drop database ${pg.escapeIdentifier(name)} with (force)`);
}

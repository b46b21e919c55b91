import pg from 'pg';
import { postgresUri, startPostgres } from '../../scripts/embedded-postgres.mjs';

/**
 * `synchronous_commit` stays on: without it the log writer's 200 ms would be in every latency, for a walsender sends only
 * what is flushed. With `fsync` off a flush is cheap.
 */
const SETTINGS = {
  shared_buffers: '1GB',
  max_wal_size: '16GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
  jit: 'off',
  wal_sender_timeout: 0,
  full_page_writes: 'off',
};

/** One server to read from and one to write into, so that what is written is not in the log that is read. */
export async function startServers() {
  const source = await serverWith('source');
  try {
    const destination = await serverWith('destination');
    return {
      source,
      destination,
      async close() {
        await source.close();
        await destination.close();
      },
    };
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function serverWith(role) {
  const server = await startPostgres({ version: 18, settings: SETTINGS });
  const admin = await connected(postgresUri(server));
  return {
    role,
    get pid() {
      return server.pid;
    },
    uri: (database) => postgresUri(server, database),
    /** The same in the parts of a source's block. */
    address: (database) => ({ host: server.host, port: server.port, database, username: server.user }),
    /** A new database in place of one of that name; `template` is copied with its rows. */
    async createDatabase(database, { template } = {}) {
      await admin.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
      await admin.query(`CREATE DATABASE ${database}${template ? ` TEMPLATE ${template}` : ''}`);
    },
    /** Runs one statement or several in a database, each value as it came. */
    async query(database, sql, values) {
      const client = await connected(postgresUri(server, database));
      try {
        const result = await client.query(sql, values);
        return (Array.isArray(result) ? result.at(-1) : result).rows;
      } finally {
        await client.end();
      }
    },
    connect: (database) => connected(postgresUri(server, database)),
    /** Settled, so that a load does not go on writing while the next one is measured. */
    checkpoint: () => admin.query('CHECKPOINT'),
    async close() {
      await admin.end().catch(() => {});
      await server.close();
    },
  };
}

async function connected(connectionString) {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  return client;
}

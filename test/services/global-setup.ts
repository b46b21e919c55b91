import type { TestProject } from 'vitest/node';
import { build } from '../../scripts/build.mjs';
import { type PostgresAddress, type PostgresServer, startPostgres } from '../../scripts/embedded-postgres.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** The servers that all tests of a run share; each test makes its own databases there (databases.ts). */
    postgres18: PostgresAddress;
    postgres15: PostgresAddress;
  }
}

/** Builds what the tests run, and starts one PostgreSQL of each version for the whole run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started = await Promise.allSettled([startPostgres({ version: 18 }), startPostgres({ version: 15 }), build()]);
  const [newer, older, built] = started;
  if (newer.status === 'rejected' || older.status === 'rejected' || built.status === 'rejected') {
    await closeAll([newer, older].flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])));
    throw new AggregateError(
      started.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])),
      'the services of the tests did not start',
    );
  }
  project.provide('postgres18', addressOf(newer.value));
  project.provide('postgres15', addressOf(older.value));
  return () => closeAll([newer.value, older.value]);
}

function addressOf({ version, host, port, user }: PostgresServer): PostgresAddress {
  return { version, host, port, user };
}

async function closeAll(servers: readonly PostgresServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}

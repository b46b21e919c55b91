import { onTestFinished } from 'vitest';
import { type PostgresOptions, type PostgresServer, startPostgres } from '../../scripts/embedded-postgres.mjs';

export {
  type PostgresAddress,
  type PostgresOptions,
  type PostgresServer,
  type PostgresVersion,
  postgresUri,
} from '../../scripts/embedded-postgres.mjs';

/** A server of this test's own, to be killed or given other settings; it ends with the test. */
export async function ownPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const server = await startPostgres(options);
  onTestFinished(() => server.close());
  return server;
}

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

const GOODBYE_MS_MAX = 1_000;
/** SQLSTATE classes of a server or connection in trouble: none of them is the statement's own fault. */
const OUTAGE_CLASSES = ['08', '25', '40', '53', '55', '57', '58', 'XX'];

export async function connected(uri: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: uri,
    keepAlive: true,
    connectionTimeoutMillis: 10_000,
    query_timeout: 120_000,
    // A transaction whose client is gone behind a dead network gives its locks back.
    idle_in_transaction_session_timeout: 30_000,
  });
  // Whoever waits for an answer is told; nobody else cares.
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** A peer behind a dead network never says goodbye. */
export async function disconnected(client: pg.Client | null): Promise<void> {
  if (client === null) return;
  const waiting = new AbortController();
  const goodbye = client.end().catch(() => {});
  await Promise.race([goodbye, pause(GOODBYE_MS_MAX, undefined, { signal: waiting.signal }).catch(() => {})]);
  waiting.abort();
}

export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as Error & { code?: string }).code;
  if (code === undefined) return /connection|timeout/i.test(error.message);
  return /^E[A-Z]+$/.test(code) || OUTAGE_CLASSES.includes(code.slice(0, 2));
}

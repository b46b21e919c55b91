import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { ownPostgres, postgresUri } from '../../services/postgres.ts';
import { openChanges, readAll, startSource } from './source-harness.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** Stream and chunk through one connection string: both read the socket by themselves. */
async function readThrough(uri: string, client: pg.Client): Promise<number[]> {
  await client.query('CREATE TABLE t (id int PRIMARY KEY, v text)');
  const source = startSource(uri, 'slot');
  const { tables } = await source.assign({ tables: [{ table: 'public.t' }] });
  const reader = await openChanges(source, 'public.t');
  await client.query("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 30000) i");
  await reader.until(30_000);
  const { ranges } = await source.plan({ table: 'public.t', ranges: 1 });
  const { start } = tables['public.t']!;
  const batches = await readAll(
    await source.read({ table: 'public.t', mode: 'chunk', range: ranges[0]!, rows: 1e6, notBefore: start }),
  );
  await source.close();
  return [reader.changes.length, batches.reduce((sum, { batch }) => sum + (batch?.rows ?? 0), 0)];
}

async function connected(uri: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  return client;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test.skipIf(!hasOpenssl)('stream and chunks are read over TLS with a checked certificate and a password', async () => {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  spawnSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    ...names,
    '-keyout',
    key,
    '-out',
    cert,
  ]);
  const tls = { certificate: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  const server = await ownPostgres({ password: 'p@ss/word', tls });
  const uri = postgresUri(server);
  const client = await connected(uri);

  expect(await readThrough(`${uri}?sslmode=verify-full&sslrootcert=${encodeURIComponent(cert)}`, client)).toEqual([
    30_000, 30_000,
  ]);
  await expect(startSource(`${uri}?sslmode=verify-full`, 's').listTables()).rejects.toMatchObject({
    code: 'source-unavailable',
  });
  const wrong = new URL(uri);
  wrong.password = 'wrong';
  await expect(startSource(wrong.href, 's').listTables()).rejects.toMatchObject({ code: 'auth-failed' });
  await client.end();
});

test.skipIf(process.platform === 'win32')('stream and chunks are read over a unix socket', async () => {
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  const server = await ownPostgres({ settings: { unix_socket_directories: folder } });
  const client = await connected(postgresUri(server));

  const uri = `postgresql://${server.user}@/postgres?host=${encodeURIComponent(folder)}&port=${server.port}`;

  expect(await readThrough(uri, client)).toEqual([30_000, 30_000]);
  await client.end();
});

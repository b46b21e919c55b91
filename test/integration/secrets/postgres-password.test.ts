import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { figure } from '../../figures.ts';
import { freshDatabase } from '../../services/databases.ts';
import { ownPostgres } from '../../services/postgres.ts';
import { SPELLINGS } from '../../unit/host/supervisor/spellings.ts';
import { hostCommand, startHost } from '../cli/host-command.ts';
import { testFolder } from '../pipeline/host-process.ts';
import { canary, leaksIn, searchedInWords } from './canary.ts';
import { watchTree } from './process-tree.ts';

const PASSWORD = canary('the role');
/** Around the host, and nothing for a driver. */
const OTHERS = {
  PGPASSWORD: 'not for drivers',
  AWS_SECRET_ACCESS_KEY: 'not for drivers',
  AWS_SESSION_TOKEN: 'not for drivers',
  URUTAU_SINK_CLIENT_SECRET: 'not for drivers',
  DATABASE_URL: 'postgres://not:for@drivers/',
  SSH_AUTH_SOCK: '/not/for/drivers',
  LD_LIBRARY_PATH: '/not/for/drivers',
};

afterAll(() => figure('secrets, passwords of servers', searchedInWords()));

test('a run with passwords shows them in no argument, environment, log, page, file or report', async () => {
  const server = await ownPostgres({ password: PASSWORD });
  const [source, copy] = [await freshDatabase(server, 'source'), await freshDatabase(server, 'copy')];
  await source.client.query('create table orders (id int primary key); insert into orders values (1)');
  const folder = testFolder();
  const reports = join(folder, 'reports');
  mkdirSync(reports);
  const { host: address, port, user } = server;
  const args = pipelineFile(folder, {
    source: {
      kind: 'postgres',
      slotName: source.name,
      postgres: { host: address, port, database: source.name, username: user, password: PASSWORD },
    },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
    sink: { type: 'postgres', uri: '${env:COPY_URI}' },
  });
  const nodeOptions = `--report-on-signal --report-uncaught-exception --report-on-fatalerror --report-directory=${reports}`;
  const env = { ...OTHERS, COPY_URI: copy.uri, NODE_OPTIONS: nodeOptions };
  const options = ['--log-level', 'debug', '--log-format', 'json', '--metrics-addr', '127.0.0.1:0'];
  const host = startHost(['run', ...args, ...options, '--summary', join(folder, 'summary.json')], env);
  const tree = watchTree(host.child.pid!);
  await host.until('table is streaming');
  const page = /127\.0\.0\.1:\d+/.exec(host.written.stderr)![0];
  const pages = await Promise.all(
    ['statusz', 'metrics', 'readyz'].map(async (path) => (await fetch(`http://${page}/${path}`)).text()),
  );
  const runtimeFiles = runtimeFolders(host.child.pid!).flatMap((path) => readdirSync(path));
  const status = await hostCommand(['table', 'status', ...args, '--output', 'json'], env);
  host.child.kill('SIGINT');
  const { code, stdout, stderr } = await host.ended;
  const seen = tree.seen();

  expect(code).toBe(0);
  const told = {
    stdout,
    stderr,
    pages: pages.join('\n'),
    status: status.stdout + status.stderr,
    summary: readFileSync(join(folder, 'summary.json'), 'utf8'),
    arguments: seen.map(({ commandLine }) => commandLine).join('\n'),
    ...filesIn(join(folder, 'state')),
  };
  expect(leaksIn(told, [PASSWORD])).toEqual([]);
  // The config file was there until the driver was ready; its socket is.
  expect(runtimeFiles.sort()).toEqual(['s', 's']);
  const drivers = seen.filter(({ environment }) => environment['URUTAU_STAGE'] !== undefined);
  expect(new Set(drivers.map(({ environment }) => environment['URUTAU_STAGE']))).toEqual(new Set(['source', 'sink']));
  for (const { environment } of drivers) {
    expect(Object.keys(environment).filter((name) => !ALLOWED.test(name))).toEqual([]);
    expect(leaksIn({ environment: JSON.stringify(environment) }, [PASSWORD, ...Object.values(OTHERS)])).toEqual([]);
  }

  const reported = startHost(['run', ...args, '--log-level', 'debug'], env);
  await reported.until('table is streaming');
  reported.child.kill('SIGUSR2');
  await reported.ended;
  expect(readdirSync(reports)).toEqual([]);
});

const address = (port: number, { host = '127.0.0.1', password = encodeURIComponent(PASSWORD) } = {}) =>
  `postgres://postgres:${password}@${host}:${port}/postgres`;

test.each<[string, () => Promise<string> | string]>([
  ['a wrong password', async () => address((await ownPostgres({ password: 'another one' })).port)],
  ['a server that is away', () => address(1)],
  ['a host that nobody knows', () => address(5432, { host: 'no-such-host.invalid' })],
  ['a server that quotes the connection string', async () => address(await quotingServer())],
  ['a password that is not encoded', () => address(5432, { password: PASSWORD })],
])('no command and no run shows a secret because of %s', async (_, uriOf) => {
  const uri = await uriOf();
  const folder = testFolder();
  const args = pipelineFile(folder, {
    source: { kind: 'postgres', slotName: 's', uri },
    sink: { type: 'postgres', uri },
  });
  const debug = ['--log-level', 'debug'];
  const host = startHost(['run', ...args, ...debug, '--log-format', 'json'], OTHERS);
  const [validate, status, teardown, init] = await Promise.all([
    hostCommand(['validate', ...args, '--connect', ...debug], OTHERS),
    hostCommand(['table', 'status', ...args.slice(0, 2), '--state-dir', join(folder, 'none'), ...debug], OTHERS),
    hostCommand(['teardown', ...args.slice(0, 2), '--state-dir', join(folder, 'none'), ...debug], OTHERS),
    hostCommand(['init', ...debug], { ...OTHERS, URUTAU_SOURCE_URI: uri }),
    Promise.race([host.ended, host.until('session begins anew').catch(() => {})]),
  ]);
  host.child.kill('SIGINT');
  const run = await host.ended;

  expect([validate.code, init.code === 0]).toEqual([2, false]);
  const told = Object.entries({ validate, status, teardown, init, run }).map(
    ([what, { stdout, stderr }]) => [what, stdout + stderr] as const,
  );
  expect(leaksIn({ ...Object.fromEntries(told), ...filesIn(join(folder, 'state')) }, [PASSWORD])).toEqual([]);
  // A piece of it would be too much: an address that is not encoded ends early.
  for (const [what, text] of told) expect([what, /wörd|w%C3%B6rd|ss\/w/.test(text)]).toEqual([what, false]);
});

const ALLOWED =
  /^(URUTAU_(STAGE|TOKEN|CONFIG|PLUGIN_DIR|PROTOCOL_VERSION|SOCKET|LIFELINE|FAULT)|PATH|HOME|LANG|LC_\w+|TZ|TMPDIR)$/;

function pipelineFile(folder: string, { source, sink }: { source: object; sink: object }): string[] {
  const file = join(folder, 'pipeline.yaml');
  const supervision = { stop: '3s', backoff: { first: '50ms', max: '50ms' }, breaker: { hold: '1h' } };
  const tables = [{ source: 'public.orders', target: 'orders' }];
  writeFileSync(file, stringify({ pipeline: 'guarded', source, sink, tables, supervision }));
  return ['-f', file, '--state-dir', join(folder, 'state')];
}

/** Answers a log-in with an error that quotes the connection string in every spelling. */
async function quotingServer(): Promise<number> {
  const texts = [PASSWORD, ...Object.values(SPELLINGS).map((spell) => `postgres://u:${spell(PASSWORD)}@h/d`)];
  const message = Buffer.from(`SFATAL\0VFATAL\0C28P01\0Mno entry for ${texts.join(' or ')}\0\0`);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length + 4);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, message])));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

/** Those of the drivers of one host; closed to everybody else. */
function runtimeFolders(pid: number): string[] {
  const bases = [process.env['XDG_RUNTIME_DIR'], tmpdir(), '/tmp'].filter((base) => base !== undefined);
  const folders = [...new Set(bases)].flatMap((base) =>
    readdirSync(base)
      .filter((name) => name.startsWith(`urutau-${pid}-`))
      .map((name) => join(base, name)),
  );
  for (const path of folders) expect(statSync(path).mode & 0o777).toBe(0o700);
  return folders;
}

function filesIn(folder: string): Record<string, string> {
  if (!existsSync(folder)) return {};
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(files.map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]));
}

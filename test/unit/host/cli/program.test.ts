import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROTOCOL_VERSION } from '@urutau/contract';
import { expect, onTestFinished, test } from 'vitest';
import { runCommandLine } from '../../../../host/cli/program.ts';
import { recordingShell } from './recording-shell.ts';

const PIPELINES = fileURLToPath(new URL('../../../fixtures/pipelines', import.meta.url));
const HOST_VERSION = JSON.parse(
  readFileSync(new URL('../../../../host/package.json', import.meta.url), 'utf8'),
).version;

test('--help names every command and exit code, and ends with 0', async () => {
  const { code, out } = await commandLine(['--help']);

  expect(code).toBe(0);
  for (const command of ['init', 'validate', 'run', 'table', 'teardown', 'driver', 'version']) {
    expect(out).toMatch(new RegExp(`^ {2}${command}\\b`, 'm'));
  }
  expect(out).toMatch(/Exit codes:\n {2}0 {4}fine\n {2}1 {4}failed\n {2}2 .*\n {2}3 .*/);
});

test.each([['init'], ['validate'], ['run'], ['table'], ['teardown'], ['driver'], ['version']])(
  'the help of %s shows an example',
  async (command) => {
    const { code, out } = await commandLine([command, '--help']);

    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^Examples?:\\n {2}urutau-host ${command}`, 'm'));
  },
);

test('a command that does not exist ends with 2 and a suggestion', async () => {
  const { code, err } = await commandLine(['rnu']);

  expect(code).toBe(2);
  expect(err).toContain('Did you mean run?');
});

test('a missing option ends with 2 and names the option', async () => {
  const { code, err } = await commandLine(['run']);

  expect(code).toBe(2);
  expect(err).toContain("required option '-f, --file <file>'");
});

test('version tells the versions of the host, the protocol and Node', async () => {
  const { code, out } = await commandLine(['version', '--output', 'json']);

  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({ host: HOST_VERSION, protocol: PROTOCOL_VERSION, node: '20.19.0' });
  expect((await commandLine(['--version'])).out).toBe(`${HOST_VERSION}\n`);
});

test('validate names all 20 problems of a file, one line each, and ends with 2', async () => {
  const { code, out } = await commandLine(['validate', '-f', join(PIPELINES, 'twenty-mistakes.yaml')]);

  expect(code).toBe(2);
  expect(out.match(/twenty-mistakes\.yaml:\d+:\d+: /g)).toHaveLength(20);
  expect(out).toContain('has 20 problems');
});

test('validate --output json holds the same problems as data', async () => {
  const file = join(PIPELINES, 'twenty-mistakes.yaml');
  const { code, out } = await commandLine(['validate', '-f', file, '--output', 'json']);

  const { valid, problems } = JSON.parse(out);
  expect([code, valid, problems.length]).toEqual([2, false, 20]);
  expect(problems[1]).toMatchObject({ line: 5, column: 3, path: 'source.slotNam' });
});

test('validate holds the config of an external driver against its schema and names the place in the file', async () => {
  const file = pipelineFile(`
pipeline: plain
source: { driver: ${JSON.stringify(fixture('drivers/plain-source'))}, config: { tables: 3 } }
sink: { type: stdout }
tables: [{ source: a, target: a, primaryKey: [id] }]
`);

  const { code, out } = await commandLine(['validate', '-f', file]);

  expect(code).toBe(2);
  expect(out).toContain(`${file}:3:`);
  expect(out).toMatch(/source\.config\.file: is required/);
  expect(out).toMatch(/source\.config\.tables: must be a block of fields, but a number came/);
});

test('a valid file with fields that run refuses passes validate, which names them', async () => {
  const file = filteredPipeline();

  const { code, out } = await commandLine(['validate', '-f', file]);

  expect(code).toBe(0);
  expect(out).toContain('run refuses: ');
  expect(out).toContain('is valid, but run refuses 1 field');
});

test('run refuses by name what this version does not carry out, before anything is started', async () => {
  const file = filteredPipeline();

  const { code, err } = await commandLine(['run', '-f', file]);

  expect(code).toBe(2);
  expect(err).toBe(
    `${file}:7:5: tables[0].filter: this version does not carry it out: rows are not filtered; remove it\n`,
  );
});

test('an error is what, where and remedy, and shows its stack only on demand', async () => {
  const quiet = await commandLine(['table', 'pause', '-f', filteredPipeline(), 'public.order']);

  expect(quiet.code).toBe(2);
  expect(quiet.err).toMatch(
    /^error: .* has no table public\.order; did you mean public\.orders\?\n {2}remedy: It has: public\.orders\.\n$/,
  );

  const loud = await commandLine(['table', 'pause', '-f', filteredPipeline(), 'public.order', '--log-level', 'debug']);
  expect(loud.err).toContain('    at ');
});

test('a table cannot be paused while no host runs, and the message says so', async () => {
  const { code, err } = await commandLine(['table', 'pause', '-f', filteredPipeline(), 'public.orders']);

  expect(code).toBe(2);
  expect(err).toContain('no host is running');
});

test('driver list and info tell what is built in, with secret fields marked', async () => {
  const list = await commandLine(['driver', 'list']);
  expect(list.out.split('\n').map((line) => line.split(/\s{2,}/)[0])).toEqual([
    'driver',
    'postgres',
    'postgres',
    'stdout',
    '',
  ]);

  const info = await commandLine(['driver', 'info', 'postgres', '--output', 'json']);
  const [source] = JSON.parse(info.out);
  expect(source).toMatchObject({ name: 'postgres', roles: ['source'], capabilities: { idempotentWrite: true } });
  expect(source.config.find(({ path }: { path: string }) => path === 'postgres.password')).toMatchObject({
    secret: true,
  });

  const none = await commandLine(['driver', 'info', 'postgre']);
  expect([none.code, none.err.split('\n')[0]]).toEqual([
    2,
    'error: there is no driver named postgre; did you mean postgres?',
  ]);
});

test('init refuses an address of another kind without showing it', async () => {
  const { code, err } = await commandLine(['init', '--from', 'mysql://root:hunter2@db/shop']);

  expect(code).toBe(2);
  expect(err).toContain('came an address with mysql://');
  expect(err).not.toContain('hunter2');
});

test('init takes the address from the environment, so that it need not be an argument, and says so when there is none', async () => {
  const shell = recordingShell({ env: { URUTAU_SOURCE_URI: 'mysql://root:hunter2@db/shop' } });

  expect(await runCommandLine(['init'], shell)).toBe(2);
  expect(shell.written.err).toContain('URUTAU_SOURCE_URI: expected postgres://');
  expect(shell.written.err).not.toContain('hunter2');
  expect((await commandLine(['init'])).err).toContain('URUTAU_SOURCE_URI: expected postgres://');
});

async function commandLine(args: string[]) {
  const shell = recordingShell();
  const code = await runCommandLine(args, shell);
  return { code, ...shell.written };
}

function filteredPipeline(): string {
  return pipelineFile(`
pipeline: shop
source: { kind: postgres, uri: "postgres://me@localhost/shop", slotName: shop }
sink: { type: stdout }
tables:
  - source: public.orders
    filter: { where: { col: status, op: eq, value: open } }
    filterImmutable: false
    target: orders
`);
}

function pipelineFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'pipeline.yaml');
  writeFileSync(file, text);
  return file;
}

function fixture(path: string): string {
  return fileURLToPath(new URL(`../../../fixtures/${path}`, import.meta.url));
}

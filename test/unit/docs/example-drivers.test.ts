import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { runCommandLine } from '../../../host/cli/program.ts';
import { recordingShell } from '../host/cli/recording-shell.ts';

const page = fileURLToPath(new URL('../../../docs/write-a-driver.md', import.meta.url));
const text = readFileSync(page, 'utf8');

test('the example drivers run as the page says: the rows that are there, then the changes', async () => {
  const folder = await exampleFolder();

  const first = await run(folder, ['--until-caught-up']);
  const second = await run(folder, ['--until-caught-up']);

  expect(first.text).toContain('numbers -> numbers: done; 3 rows copied');
  expect(first.code).toBe(0);
  expect(second.text).toContain('resume from its checkpoint');
  expect(second.text).toContain('numbers -> numbers: done; 0 rows copied');
  expect(second.code).toBe(0);
}, 60_000);

test('the schema of the example is held against its configuration', async () => {
  const folder = await exampleFolder();
  writeFileSync(join(folder, 'numbers.yaml'), block('yaml', 'driver: ./count').replace('token:', 'tokn:'));

  const shell = recordingShell();
  const code = await runCommandLine(['validate', '-f', join(folder, 'numbers.yaml')], shell);

  expect([code, shell.written.out]).toEqual([2, expect.stringContaining('tokn')]);
});

const TOO_LONG_MS = 20_000;

/** The two folders of the page, built by the options of its command, and the pipeline file that uses them. */
async function exampleFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-docs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const manifest = block('yaml', 'name: count');
  writeFileSync(join(folder, 'numbers.yaml'), block('yaml', 'driver: ./count'));
  await Promise.all([
    driverFolder(join(folder, 'count'), manifest, block('ts', 'defineSink('), block('json', '"secret"')),
    driverFolder(
      join(folder, 'numbers'),
      manifest.replace('name: count', 'name: numbers').replace('[sink]', '[source]'),
      block('ts', 'defineSource('),
    ),
  ]);
  return folder;
}

async function driverFolder(folder: string, manifest: string, source: string, schema?: string): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, 'plugin.yaml'), manifest);
  if (schema !== undefined) writeFileSync(join(folder, 'config.schema.json'), schema);
  expect(block('sh', 'esbuild')).toBe('npx esbuild sink.ts --bundle --platform=node --outfile=dist/sink.cjs\n');
  await build({
    stdin: { contents: source, loader: 'ts', resolveDir: dirname(page) },
    bundle: true,
    platform: 'node',
    outfile: join(folder, 'dist/sink.cjs'),
    conditions: ['urutau-source'],
    logLevel: 'warning',
  });
}

async function run(folder: string, options: string[]): Promise<{ code: number; text: string }> {
  const shell = recordingShell({
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    // One that does not end by itself is stopped, so that the test shows what it said.
    onInterrupt: (stop) => {
      const timer = setTimeout(stop, TOO_LONG_MS);
      return () => clearTimeout(timer);
    },
  });
  const args = ['run', '-f', join(folder, 'numbers.yaml'), '--log-level', 'error', ...options];
  const code = await runCommandLine(args, shell);
  return { code, text: shell.written.err };
}

/** The one block of the language that holds `mark`. */
function block(language: string, mark: string): string {
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, body]) => body!,
  );
  const found = blocks.filter((body) => body.includes(mark));
  expect(found, `blocks of ${language} with ${mark}`).toHaveLength(1);
  return found[0]!;
}

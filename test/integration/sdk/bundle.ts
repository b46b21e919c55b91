import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll } from 'vitest';

/** Bundles a driver beside the tests to one file of plain JavaScript, which is removed after the tests of the file. */
export async function bundle(path: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, basename(path).replace(/\.ts$/, '.mjs'));
  await build({
    entryPoints: [fileURLToPath(new URL(path, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    conditions: ['urutau-source'],
    banner: { js: "import { createRequire as r } from 'node:module';\nconst require = r(import.meta.url);" },
    logLevel: 'warning',
  });
  return outfile;
}

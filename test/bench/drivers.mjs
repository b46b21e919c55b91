// The drivers of the benchmark are written with the SDK; each is bundled before it is used.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const REQUIRE_BANNER =
  "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);";

/** Bundles the driver and answers its folder. */
export async function driverFolder(name) {
  const folder = join(here, 'drivers', name);
  await build({
    entryPoints: [join(folder, 'main.ts')],
    outfile: join(folder, 'dist/main.js'),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['urutau-source'],
    banner: { js: REQUIRE_BANNER },
    keepNames: true,
    logLevel: 'warning',
  });
  return folder;
}

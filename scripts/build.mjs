// Bundles the host, the drivers and the libraries to plain JavaScript: a bundled driver starts several times faster
// than one that loads TypeScript. What has not changed since the last time is left alone.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const STAMP_FILE = join(root, '.cache/build.json');

/** libsql is native code, and pino starts a worker thread from a file of its own; pg asks whether pg-native is there. */
const PROGRAM = { bundleDependencies: true, external: ['libsql', 'pino', 'pino-pretty', 'pg-native'] };
const LIBRARY = { bundleDependencies: false, external: [] };

const OUTPUTS = [
  { entry: 'contract/ts/index.ts', output: 'contract/dist/index.js', ...LIBRARY },
  { entry: 'sdk/typescript/index.ts', output: 'sdk/typescript/dist/index.js', ...LIBRARY },
  { entry: 'host/main.ts', output: 'host/dist/main.js', ...PROGRAM },
  { entry: 'drivers/postgres/source/main.ts', output: 'drivers/postgres/dist/source.js', ...PROGRAM },
  { entry: 'drivers/postgres/reader/main.ts', output: 'drivers/postgres/dist/reader.js', ...PROGRAM },
  { entry: 'drivers/postgres/sink/main.ts', output: 'drivers/postgres/dist/sink.js', ...PROGRAM },
  { entry: 'drivers/stdout/sink/main.ts', output: 'drivers/stdout/dist/sink.js', ...PROGRAM },
];

/** Packages in CommonJS call `require` for Node's own modules, which a module in ESM does not have. */
const REQUIRE_BANNER =
  "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);";

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

async function main() {
  const startMs = performance.now();
  try {
    const written = await build();
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(written.length === 0 ? 'everything is up to date' : `built ${written.join(', ')} in ${seconds} s`);
  } catch (error) {
    // esbuild has printed its errors with their places.
    if (!Array.isArray(error.errors)) console.error(error);
    process.exitCode = 1;
  }
}

/** @type {typeof import('./build.d.mts').build} */
export async function build() {
  const startedMs = Date.now();
  const tools = hashOf(['scripts/build.mjs', 'package-lock.json']);
  const stamps = readStamps();
  const stale = OUTPUTS.filter(
    ({ entry, output }) => existsSync(join(root, entry)) && !isFresh(output, stamps[output], tools),
  );
  const built = await Promise.all(
    stale.map(async ({ entry, output, bundleDependencies, external }) => {
      const { metafile, outputFiles } = await esbuild.build({
        absWorkingDir: root,
        entryPoints: [entry],
        outfile: output,
        bundle: true,
        platform: 'node',
        target: 'node20',
        format: 'esm',
        conditions: ['urutau-source'],
        packages: bundleDependencies ? 'bundle' : 'external',
        external,
        banner: bundleDependencies ? { js: REQUIRE_BANNER } : {},
        sourcemap: 'linked',
        // Readable names in stack traces and in errors.
        keepNames: true,
        metafile: true,
        write: false,
        logLevel: 'warning',
      });
      for (const { path, contents } of outputFiles) replaceFile(path, contents);
      // What lies in node_modules changes only with the lock file.
      const inputs = Object.keys(metafile.inputs).filter((path) => !path.includes('node_modules/'));
      // A file that was saved meanwhile may not be in the bundle: no stamp, so the next build makes it again.
      const changed = inputs.some((path) => statSync(join(root, path)).mtimeMs >= startedMs);
      return [output, changed ? undefined : { inputs, hash: hashOf(inputs), tools }];
    }),
  );
  if (built.length > 0) writeStamps({ ...stamps, ...Object.fromEntries(built) });
  return built.map(([output]) => output);
}

function isFresh(output, stamp, tools) {
  return stamp?.tools === tools && existsSync(join(root, output)) && stamp.hash === hashOf(stamp.inputs);
}

function hashOf(paths) {
  const hash = createHash('sha256');
  for (const path of paths) {
    hash.update(`${path}\0`);
    if (existsSync(join(root, path))) hash.update(readFileSync(join(root, path)));
    hash.update('\0');
  }
  return hash.digest('hex');
}

function readStamps() {
  try {
    return JSON.parse(readFileSync(STAMP_FILE, 'utf8'));
  } catch {
    return {};
  }
}

function writeStamps(stamps) {
  replaceFile(STAMP_FILE, JSON.stringify(stamps));
}

/** Written beside and renamed: whoever reads it at this moment, such as a driver that starts, reads a whole file. */
function replaceFile(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}`;
  writeFileSync(partial, contents);
  renameSync(partial, path);
}

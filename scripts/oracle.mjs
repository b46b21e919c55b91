// `npm run oracle`: the acceptance workload against real servers, judged row by row. See docs/oracle.md.
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { install } from './install.mjs';

const root = join(fileURLToPath(import.meta.url), '../..');
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // The first one ends everything in order. Who asks twice does not want to wait.
    if (stop.signal.aborted) process.exit(130);
    stop.abort();
    console.log('\nEnding …');
  });
}

await main();

async function main() {
  try {
    await install();
    // What comes now needs the installed packages.
    const { build } = await import('./build.mjs');
    await build();
    const { oracle } = await import(pathToFileURL(await bundle()).href);
    const { postgresUri, startPostgres } = await import('./embedded-postgres.mjs');
    process.exitCode = await oracle(process.argv.slice(2), {
      startPostgres,
      postgresUri,
      hostProgram: join(root, 'host/dist/main.js'),
      signal: stop.signal,
      print: (line) => console.log(line),
    });
  } catch (error) {
    console.error(`oracle: ${error.message}`);
    process.exitCode = 1;
  }
  if (stop.signal.aborted) process.exitCode = 130;
}

/** The oldest Node that is supported reads no TypeScript. */
async function bundle() {
  const esbuild = await import('esbuild');
  const outfile = join(root, '.cache/oracle/command.mjs');
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/oracle/command.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    keepNames: true,
    sourcemap: 'inline',
    logLevel: 'warning',
  });
  return outfile;
}

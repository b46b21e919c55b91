// `npm run quickstart`: from a fresh clone to a replicated shop, with nothing but Node and npm.
// `-- --keep` leaves server, host and live traffic running until Ctrl-C.
import { install } from './install.mjs';

const startMs = performance.now();
const stop = new AbortController();
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    stop.abort();
    // The first one ends everything in order. Who asks twice does not want to wait.
    if (++signals > 1) process.exit(130);
    console.log('\nEnding …');
  });
}

await main();

async function main() {
  const unknown = process.argv.slice(2).find((argument) => argument !== '--keep');
  if (unknown !== undefined) {
    console.error(`quickstart: unknown option ${unknown}: the only one is --keep (npm run quickstart -- --keep)`);
    process.exitCode = 2;
    return;
  }
  try {
    await install();
    stop.signal.throwIfAborted();
    // What comes now needs the installed packages.
    const { build } = await import('./build.mjs');
    const built = await build();
    if (built.length > 0) console.log(`built ${built.length} programs`);
    stop.signal.throwIfAborted();
    const { tour } = await import('./quickstart/tour.mjs');
    await tour({ keep: process.argv.includes('--keep'), startMs, signal: stop.signal });
  } catch (error) {
    if (stop.signal.aborted) process.exitCode = 130;
    else {
      console.error(`\nThe quickstart failed: ${error.message}`);
      process.exitCode = 1;
    }
  }
}

// `npm run bench`: floor tools and the product on the same data in one run. See docs/benchmark.md.
import { parseOptions, USAGE } from '../test/bench/options.mjs';
import { install } from './install.mjs';

await main();

async function main() {
  const options = parseOptions(process.argv.slice(2));
  if (options.help || options.problem) {
    console[options.problem ? 'error' : 'log'](options.problem ? `bench: ${options.problem}\n\n${USAGE}` : USAGE);
    process.exitCode = options.problem ? 2 : 0;
    return;
  }
  try {
    await install();
    // What comes now needs the installed packages.
    const { build } = await import('./build.mjs');
    await build();
    const { bench } = await import('../test/bench/bench.mjs');
    process.exitCode = await bench(options);
  } catch (error) {
    console.error(`bench: ${error.message}`);
    process.exitCode = 1;
  }
}

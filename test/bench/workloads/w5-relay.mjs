import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { driverFolder } from '../drivers.mjs';
import { socketPipe } from '../floors/socket-pipe.mjs';
import { product } from '../product.mjs';
import { printHotFunctions } from '../profile.mjs';

const SIZES = [
  { key: 'w5 64 KiB', bodyBytes: 64 * 1024 },
  { key: 'w5 1 MiB', bodyBytes: 1024 * 1024 },
  { key: 'w5 4 MiB', bodyBytes: 4 * 1024 * 1024 },
];
const TOTAL_BYTES = 2 * 1024 ** 3;

/** The host between a source that sends one ready batch again and again, and a sink that only counts. */
export async function run({ options, folder, contest }) {
  const source = await driverFolder('relay-source');
  for (const { key, bodyBytes } of SIZES) {
    const batches = Math.ceil(TOTAL_BYTES / bodyBytes);
    const medians = await contest.interleave(key, [
      { name: 'socket pipe', run: () => socketPipe({ folder, bodyBytes, bodies: batches }) },
      { name: 'urutau', run: () => relay({ name: 'w5', bodyBytes, batches }) },
    ]);
    contest.figure(key, medians.urutau.mbPerSecond / medians['socket pipe'].mbPerSecond);
    if (options.profile) {
      const profile = join(options.profile, key.replaceAll(' ', '-'));
      await relay({ name: 'w5-profile', bodyBytes, batches, profile });
      printHotFunctions(profile);
    }
  }

  async function relay({ name, bodyBytes, batches, profile }) {
    const tally = join(folder, 'tally.json');
    const pipeline = {
      source: { driver: source, config: { bodyBytes, batches, tally }, snapshotMode: 'none' },
      sink: { type: 'stdout', discard: true },
      tables: [{ source: 'blobs', target: 'blobs' }],
    };
    if (profile) mkdirSync(profile, { recursive: true });
    const host = product({ folder, name, pipeline, plugins: { source }, profile });
    const { processes } = await host.untilCaughtUp();
    const { bytes, firstMs, lastMs } = JSON.parse(readFileSync(tally, 'utf8'));
    return { bytes, seconds: (lastMs - firstMs) / 1000, processes };
  }
}

import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const SHOWN = 22;

/** Prints, of each process, the functions that used most of its busy time by themselves. */
export function printHotFunctions(folder) {
  for (const role of ['source', 'host', 'sink']) {
    const file = join(folder, `${role}.cpuprofile`);
    if (!existsSync(file)) continue;
    const { busyMs, functions } = hotFunctions(JSON.parse(readFileSync(file, 'utf8')));
    console.log(`   ${role}: busy for ${(busyMs / 1000).toFixed(2)} s`);
    for (const { name, place, ms } of functions.slice(0, SHOWN)) {
      console.log(`      ${((100 * ms) / busyMs).toFixed(1).padStart(5)} %  ${name}  ${place}`);
    }
  }
}

function hotFunctions({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const times = new Map();
  let busyMs = 0;
  for (const [index, id] of samples.entries()) {
    const { functionName, url, lineNumber } = byId.get(id).callFrame;
    if (functionName === '(idle)') continue;
    const ms = timeDeltas[index] / 1000;
    busyMs += ms;
    const place = url === '' ? '' : `${basename(url)}:${lineNumber + 1}`;
    const key = `${functionName} ${place}`;
    const entry = times.get(key) ?? { name: functionName || '(anonymous)', place, ms: 0 };
    entry.ms += ms;
    times.set(key, entry);
  }
  return { busyMs, functions: [...times.values()].sort((a, b) => b.ms - a.ms) };
}

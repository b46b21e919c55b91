import type { FaultAct, FaultPoint } from '@urutau/contract';
import type { FaultCase } from './fault-cases.ts';
import type { Played } from './play.ts';
import { nameOfServerCase, type ServerCase } from './server-faults.ts';

const ACTS: readonly FaultAct[] = ['kill', 'stop', 'exit0', 'half-close', 'drop-reply'];

/** docs/kill-matrix.md: what was played, who noticed and when. Null: it failed. */
export function matrixPage(
  outcomes: ReadonlyMap<FaultCase, Played | null>,
  recovered: ReadonlyMap<ServerCase, number | null>,
): string {
  const points = new Map<FaultPoint, Map<FaultAct, string>>();
  for (const [{ point, act }, played] of outcomes) {
    const row = points.get(point) ?? new Map();
    row.set(act, played === null ? 'FAILED' : `${seconds(played.noticedMs)} / ${seconds(played.recoveredMs)}`);
    points.set(point, row);
  }
  const failed = [...outcomes.values(), ...recovered.values()].filter((result) => result === null).length;
  return `# The kill matrix

Every [fault point](fault-points.md) with every fault, in a pipeline from Postgres to Postgres under load: random
transactions begin before the snapshot and go on through and after the fault. Then the destination must equal the
source row for row (upsert), or hold each initial row and each change once (append), or show the last state of each row
(lines, which may come twice). ${outcomes.size + recovered.size} cases, ${failed} failed.

Each cell says how long it took until the fault was noticed, and until the destination equalled the source with at
least 20 more transactions. Heartbeats every second and dead after 3 misses, so that a process that stands still is
found in 2 to 4 s here, where the defaults take 14 to 16 s. Drivers give a silent host 15 s; one that stands still before it
has a driver is noticed by nobody. A host that stands still is replaced by a successor with other folders, is woken when
that one has committed, must write nothing, and ends.

To run it again: \`npm run test:long -- kill-matrix\`, with \`URUTAU_WRITE_MATRIX=1\` to write this page anew, and with
\`URUTAU_TEST_POINT\`, \`URUTAU_TEST_ACT\` and \`URUTAU_TEST_SEED\` for a part of it.

| point | ${ACTS.map(title).join(' | ')} |
| --- | ${ACTS.map(() => '---').join(' | ')} |
${[...points].map(([point, row]) => `| \`${point}\` | ${ACTS.map((act) => row.get(act) ?? '').join(' | ')} |`).join('\n')}

| fault of a server | until equal again |
| --- | --- |
${[...recovered].map(([fault, ms]) => `| ${nameOfServerCase(fault)} | ${ms === null ? 'FAILED' : seconds(ms)} |`).join('\n')}
`;
}

function title(act: FaultAct): string {
  switch (act) {
    case 'kill':
      return 'kill -9';
    case 'stop':
      return 'SIGSTOP';
    case 'exit0':
      return 'exit 0';
    case 'half-close':
      return 'half-closed stream';
    case 'drop-reply':
      return 'lost reply';
    case 'hang':
      return 'hang';
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

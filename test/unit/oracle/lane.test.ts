import { expect, test } from 'vitest';
import { Coverage } from '../../oracle/coverage.ts';
import { Generator } from '../../oracle/generator.ts';
import { Lane, type LaneCounts } from '../../oracle/lane.ts';
import { Pace } from '../../oracle/pace.ts';
import type { OracleSource, SourceWriter } from '../../oracle/ports.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const RATE = 100;

test(`a source that does a tenth of the rate is through with an episode after twice its time (seed ${SEED})`, async () => {
  const { lane, coverage, clock, stop } = slowLane({ rowsPerSecond: RATE / 10 });

  await lane.run(stop(() => coverage.count('backlog episode') > 0));

  const { episodeMs } = clock;
  expect(coverage.count('backlog episode')).toBe(1);
  // From 10 to 40 s, twice, and the transactions at both of its ends.
  expect(episodeMs).toBeGreaterThan(20_000);
  expect(episodeMs).toBeLessThan(80_000 + 2 * clock.longestMs);
});

/** The clock moves with the source's work alone, so that minutes of a slow machine pass at once. */
function slowLane({ rowsPerSecond }: { rowsPerSecond: number }) {
  const clock = { ms: 0, episodeMs: 0, longestMs: 0 };
  const abort = new AbortController();
  let isOver = () => false;
  const pace = new Pace({ seed: SEED, runMs: 60_000 });
  const writer: SourceWriter = {
    async run({ rows, statements }) {
      const tookMs = (rows / rowsPerSecond) * 1_000;
      clock.ms += tookMs;
      clock.longestMs = Math.max(clock.longestMs, tookMs);
      const tables = new Set(statements.flatMap((one) => ('table' in one ? [one.table] : [])));
      if (inEpisode && tables.size === 1 && tables.has('events')) clock.episodeMs += tookMs;
      if (isOver()) abort.abort();
    },
    lastCommitted: async () => 0,
    close: async () => {},
  };
  let inEpisode = false;
  const watched = {
    at: (ms: number) => {
      const beat = pace.at(ms);
      inEpisode = beat.only !== null;
      return beat;
    },
    after: (ms: number, workMs: number) => pace.after(ms, workMs),
  } as Pace;
  const coverage = new Coverage();
  const counts: LaneCounts = {
    committed: 0,
    undone: 0,
    rows: 0,
    readBack: { committed: 0, undone: 0 },
    changes: { accounts: 0, items: 0, events: 0 },
  };
  const shape = { rows: 200, transactionRowsMax: 20, payloadBytesMax: 64 };
  const lane = new Lane({
    lane: 0,
    source: { connect: async () => writer, isOutage: () => false } as unknown as OracleSource,
    generator: new Generator({ ...shape, seed: SEED, lane: 0, lanes: 1 }),
    pace: watched,
    rate: RATE,
    rowsMax: shape.transactionRowsMax,
    coverage,
    counts,
    nowMs: () => clock.ms,
  });
  // In the deepest lull even this source is early, and nothing else moves the clock.
  lane.hurry = true;
  const stop = (condition: () => boolean) => {
    isOver = condition;
    return abort.signal;
  };
  return { lane, coverage, clock, stop };
}

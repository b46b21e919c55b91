import { CLASSES } from './compare.ts';
import { ALL_CASES } from './coverage.ts';
import { type Options, reproOf } from './options.ts';
import type { Played } from './play.ts';
import type { OracleRun } from './run.ts';
import { TABLE_NAMES } from './tables.ts';

/** What a run did and found, for a person. */
export function summary(run: OracleRun, { verdict, deaths, seconds }: Played, options: Options): string {
  const { committed, undone, rows, readBack } = verdict.counts;
  const lag = verdict.lagSeconds;
  const hits = ALL_CASES.map((one) => `   ${String(run.coverage.count(one)).padStart(8)}  ${one}`);
  const tables = TABLE_NAMES.map((table) => {
    const found = verdict.differences[table];
    const classes = found ? CLASSES.map((kind) => `${found.counts[kind]} ${kind}`).join(', ') : 'not compared';
    return `   ${table.padEnd(8)} ${String(found?.rows ?? '?').padStart(8)} rows: ${classes}`;
  });
  return [
    '',
    `${rows} rows in ${committed} transactions, ${undone} undone, in ${seconds.toFixed(0)} s: ${(rows / seconds).toFixed(0)} rows/s`,
    `ends that were read back: ${readBack.committed} committed, ${readBack.undone} undone`,
    ...(options.chaos
      ? [`killed: ${deaths.source} source drivers, ${deaths.sink} sink drivers, ${deaths.host} hosts`]
      : []),
    lag === null ? 'no lag was seen' : `lag ${lag.median.toFixed(1)} s in the median, ${lag.max.toFixed(1)} s at most`,
    verdict.settledMs === null
      ? 'never settled'
      : `settled ${(verdict.settledMs / 1_000).toFixed(1)} s after the last change`,
    'cases:',
    ...hits,
    'destination against source:',
    ...tables,
    `verdict: ${verdict.ok ? 'nothing wrong' : `${verdict.problems.length} problems`}`,
    `seed ${options.seed}; once more: ${reproOf(options)}`,
  ].join('\n');
}

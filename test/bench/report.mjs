/** The figures beside bar and goal, then what was skipped and what failed. */
export function printTable({ figures, skipped, failures }) {
  const rows = [
    ['figure', 'value', 'bar', 'goal', ''],
    ...figures.map(({ title, value, unit, bar, goal, better, verdict, note }) => [
      title,
      `${shown(value)} ${unit}`,
      bar === undefined ? '' : `${better === 'more' ? '≥' : '≤'} ${bar}`,
      goal === undefined ? '' : String(goal),
      [VERDICTS[verdict], note].filter(Boolean).join('; '),
    ]),
  ];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  console.log('');
  for (const row of rows) {
    console.log(
      row
        .map((cell, column) =>
          column === 0 || column === 4 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
        )
        .join('  ')
        .trimEnd(),
    );
  }
  for (const { what, why } of skipped) console.log(`skipped: ${what} (${why})`);
  for (const { workload, message } of failures) console.log(`FAILED: ${workload}: ${message}`);
}

const VERDICTS = { '': '', below: 'BELOW', reached: 'reached', goal: 'goal' };

function shown(value) {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(2);
}

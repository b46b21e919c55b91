import { DIFFERENCES } from '../verify/judge.ts';
import type { FoundRow } from '../verify/look-again.ts';
import type { VerifiedTable } from '../verify/verify-pipeline.ts';
import { count } from './count.ts';

/** What came of one table, for a person: at most `show` rows of each kind. Ends with a newline. */
export function verifiedText(table: VerifiedTable, show: number): string {
  const lines = [`${table.source} -> ${table.target}: ${summary(table)}`, ...detailLines(table, show)];
  return lines.map((line) => `${line}\n`).join('');
}

function summary({ result, comparison, failure }: VerifiedTable): string {
  if (comparison === null) return `${result}: ${failure!.problem}`;
  const { rows, counts } = comparison;
  if (result === 'equal') return `equal, ${count(rows.source, 'row')}`;
  const found = DIFFERENCES.filter((kind) => counts[kind] > 0).map((kind) => `${number(counts[kind])} ${kind}`);
  const unsettled = counts.unsettled > 0 ? [`${count(counts.unsettled, 'row')} changed at every look`] : [];
  const sizes = `${count(rows.source, 'row')} at the source, ${number(rows.destination)} in the destination`;
  return `${result}: ${[...found, ...unsettled].join(', ')} (${sizes})`;
}

function detailLines({ comparison, failure, note }: VerifiedTable, show: number): string[] {
  if (failure !== null) return [`  remedy: ${failure.remedy}`];
  const { found, counts, left } = comparison!;
  const lines = DIFFERENCES.flatMap((kind) => {
    const shown = found.filter((row) => row.kind === kind).slice(0, show);
    const more = counts[kind] - shown.length;
    return [...shown.map(rowLine), ...(more > 0 ? [`  and ${number(more)} more ${kind}`] : [])];
  });
  if (left !== null) {
    const { buckets, rows } = left;
    lines.push(
      `  not looked into, for enough is known: ${count(buckets, 'key bucket')} more that differ, with ${count(rows.source, 'row')} at the source and ${number(rows.destination)} in the destination`,
    );
  }
  return note === null ? lines : [...lines, `  note: ${note}`];
}

function rowLine({ kind, key, columns }: FoundRow): string {
  return `  ${kind.padEnd('duplicated'.length)}  ${key}${columns.length > 0 ? `: ${columns.join(', ')}` : ''}`;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}

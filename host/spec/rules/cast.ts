import { present, type Rule, tablesOf } from './rule.ts';

const PLAIN = 'bool|int32|int64|uint64|float32|float64|string|binary|date|time|timestamp|timestamptz|uuid|json';
const TARGET = new RegExp(
  `^(${PLAIN}|string\\((hex|base64)\\)|timestamptz\\(assume_utc\\)|decimal\\((\\d{1,2}), ?(\\d{1,2})\\))$`,
);
const PRECISION_MAX = 76;

/** Rule 14, and the declared columns of a topic. Whether a column of a database exists, its driver says. */
export const cast: Rule = function* ({ file, source, show }) {
  for (const { table, at } of tablesOf(file)) {
    const declared = table.columns && present(table.columns).map(({ name }) => name);
    const known = declared ?? table.columnFilter;
    for (const [column, target] of Object.entries(table.cast ?? {})) {
      const path = [...at, 'cast', column];
      if (target !== undefined && !isCastTarget(target))
        yield { path, what: `expected a type, came ${show(path)}`, remedy: TYPES };
      if (known !== undefined && !known.includes(column)) {
        yield { path, atKey: true, what: 'the table has no such column', remedy: 'name one of its columns' };
      }
    }
    if (table.columns === undefined) continue;
    if (source !== undefined && source !== 'kafka' && source !== 'external') {
      yield { path: [...at, 'columns'], atKey: true, what: `belongs to kafka, not to ${source}`, remedy: 'remove it' };
      continue;
    }
    for (const [index, column] of table.columns.entries()) {
      const path = [...at, 'columns', index, 'type'];
      if (column?.type !== undefined && !isCastTarget(column.type))
        yield { path, what: `expected a type, came ${show(path)}`, remedy: TYPES };
    }
  }
};

const TYPES = 'write a type such as int64, string, timestamptz, decimal(12,2) or string(hex)';

function isCastTarget(text: string): boolean {
  const match = TARGET.exec(text);
  if (match === null) return false;
  const [precision, scale] = [match[3], match[4]].map((digits) => (digits === undefined ? undefined : Number(digits)));
  return precision === undefined || (precision >= 1 && precision <= PRECISION_MAX && scale! <= precision);
}

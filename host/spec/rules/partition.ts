import { type Rule, repeated, tablesOf } from './rule.ts';

const COLUMN = '[A-Za-z_][\\w.]*';
const FORM = new RegExp(
  `^(${COLUMN}|(identity|year|month|day|hour)\\(${COLUMN}\\)|(bucket|truncate)\\([1-9]\\d{0,8}, ?${COLUMN}\\))$`,
);

/** Each entry of partitionBy is a column or a known function of one. */
export const partition: Rule = function* ({ file, show }) {
  for (const { table, at } of tablesOf(file)) {
    const path = [...at, 'partitionBy'];
    for (const index of repeated(table.partitionBy))
      yield { path: [...path, index], what: 'this partition is named twice', remedy: 'remove one' };
    for (const [index, entry] of (table.partitionBy ?? []).entries()) {
      if (entry === undefined || FORM.test(entry)) continue;
      const what = `expected column, year, month, day, hour(column), bucket(N,column) or truncate(N,column), came ${show([...path, index])}`;
      yield { path: [...path, index], what, remedy: 'write it as day(created_at) or bucket(16,id)' };
    }
  }
};

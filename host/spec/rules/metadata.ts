import { present, type Rule, repeated, tablesOf } from './rule.ts';

/** Rule 13; that the names are known says the schema. */
export const metadata: Rule = function* ({ file, show }) {
  for (const { table, at } of tablesOf(file)) {
    const names = (table.metadata ?? []).map((column) => column?.as);
    const columns = new Set([
      ...present(table.primaryKey),
      ...present(table.columnFilter),
      ...present(table.columns).map(({ name }) => name),
      ...Object.keys(table.cast ?? {}),
    ]);
    for (const index of repeated(names)) {
      yield {
        path: [...at, 'metadata', index, 'as'],
        what: 'this name is used twice',
        remedy: 'rename one of the two',
      };
    }
    for (const [index, name] of names.entries()) {
      const path = [...at, 'metadata', index, 'as'];
      if (name !== undefined && !/^[A-Za-z_]\w*$/.test(name)) {
        yield {
          path,
          what: `expected a letter or "_", then letters, digits and "_", came ${show(path)}`,
          remedy: 'rename the column',
        };
      } else if (name !== undefined && columns.has(name)) {
        yield { path, what: 'the table has a column of this name', remedy: 'rename the metadata column' };
      }
    }
  }
};

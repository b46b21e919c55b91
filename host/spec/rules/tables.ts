import { fullTarget, namespaceOf } from '../names.ts';
import type { Path } from '../path.ts';
import type { Finding } from '../problem.ts';
import { present, type Rule, repeated, type Subject, type TableDraft, tablesOf, writeModeOf } from './rule.ts';

/** Rules 6 to 9 and 12: which tables there are, and what the fields of one table demand of each other. */
export const tables: Rule = function* (subject) {
  yield* wholeList(subject);
  for (const { table, at } of tablesOf(subject.file)) {
    yield* names(table, at, subject);
    yield* key(table, at, subject);
    yield* reading(table, at, subject);
    yield* columns(table, at);
  }
};

function* wholeList({ file }: Subject): Iterable<Finding> {
  const discover = file.source?.postgres?.discover === true;
  const count = file.tables?.length ?? 0;
  if (discover && count > 0) {
    yield {
      path: ['tables'],
      atKey: true,
      what: 'a list of tables and source.postgres.discover exclude each other',
      remedy: 'keep one of the two',
    };
  }
  if (!discover && count === 0) {
    yield {
      path: ['tables'],
      what: 'expected at least one table, came none',
      remedy: 'add a table with source and target',
    };
  }
  const namespace = namespaceOf(file.sink);
  const sources = (file.tables ?? []).map((table) => table?.source);
  const targets = (file.tables ?? []).map((table) => table?.target && fullTarget(table.target, namespace));
  for (const [field, values] of [
    ['source', sources],
    ['target', targets],
  ] as const) {
    for (const index of repeated(values)) {
      const first = values.indexOf(values[index]);
      yield {
        path: ['tables', index, field],
        what: `is the same as that of tables[${first}]`,
        remedy: 'remove or rename one of the two',
      };
    }
  }
}

function* names(table: TableDraft, at: Path, { source, show }: Subject): Iterable<Finding> {
  if (table.source === undefined || !(source === 'postgres' || source === 'mysql' || source === 'mariadb')) return;
  if (/^[^.]+(\.[^.]+)+$/.test(table.source)) return;
  const [owner, example] = source === 'postgres' ? ['schema', 'public.orders'] : ['database', 'shop.orders'];
  const path = [...at, 'source'];
  yield {
    path,
    what: `expected ${owner}.table, came ${show(path)}`,
    remedy: `write the full name, such as ${example}`,
  };
}

function* key(table: TableDraft, at: Path, { file, source, show }: Subject): Iterable<Finding> {
  const path = [...at, 'primaryKey'];
  // A database has keys of its own; a topic has not.
  const keyless = table.primaryKey === undefined ? source === 'kafka' : table.primaryKey.length === 0;
  if (keyless && writeModeOf(table, file) === 'upsert') {
    yield { path, what: 'is missing, upsert needs a key', remedy: 'name the key columns, or write writeMode: append' };
  }
  for (const [index, column] of (table.primaryKey ?? []).entries()) {
    if (!column?.includes('.')) continue;
    const what = `expected a column without a dot, came ${show([...path, index])}`;
    yield { path: [...path, index], what, remedy: 'name a top-level column' };
  }
  yield* distinct(table.primaryKey, path);
}

function* reading(table: TableDraft, at: Path, { file }: Subject): Iterable<Finding> {
  const { number = 1, max } = table.workers ?? {};
  if (max !== undefined && max < number) {
    yield {
      path: [...at, 'workers', 'max'],
      what: `expected at least number (${number}), came ${max}`,
      remedy: 'raise max or lower number',
    };
  }
  if (table.mode === 'incremental' && table.cursor === undefined) {
    yield {
      path: [...at, 'cursor'],
      what: 'is missing, the incremental mode asks by it',
      remedy: 'name a column that only grows',
    };
  }
  if (table.mode !== 'incremental' && table.cursor !== undefined) {
    yield {
      path: [...at, 'cursor'],
      atKey: true,
      what: 'belongs to mode: incremental',
      remedy: 'remove it, or set the mode',
    };
  }
  if (writeModeOf(table, file) === 'append' && table.filter !== undefined && table.filterImmutable !== true) {
    const what = 'is missing, in append a row that leaves or enters the filter cannot be told';
    yield {
      path: [...at, 'filterImmutable'],
      what,
      remedy: 'set it to true where the filter’s columns never change, or remove the filter',
    };
  }
}

function* columns(table: TableDraft, at: Path): Iterable<Finding> {
  const keys = present(table.primaryKey);
  if (table.columnFilter !== undefined) {
    const path = [...at, 'columnFilter'];
    yield* distinct(table.columnFilter, path);
    if (table.columnFilter.length === 0)
      yield { path, what: 'expected at least one column, came none', remedy: 'name columns, or remove the field' };
    const absent = keys.filter((column) => !table.columnFilter!.includes(column));
    if (absent.length > 0) yield { path, what: `the key column ${absent.join(', ')} is not in it`, remedy: 'add it' };
  }
  if (table.chunkColumn !== undefined && table.primaryKey !== undefined && !keys.includes(table.chunkColumn)) {
    yield {
      path: [...at, 'chunkColumn'],
      what: `expected a column of the key (${keys.join(', ')})`,
      remedy: 'name one, or remove the field',
    };
  }
}

function* distinct(items: readonly (string | undefined)[] | undefined, path: Path): Iterable<Finding> {
  for (const index of repeated(items))
    yield { path: [...path, index], what: 'this column is named twice', remedy: 'remove one' };
}

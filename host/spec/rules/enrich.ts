import type { Path } from '../path.ts';
import type { Finding } from '../problem.ts';
import { empty, present, type Rule, repeated, type TableDraft, tablesOf } from './rule.ts';

type EnrichDraft = NonNullable<NonNullable<TableDraft['enrich']>[number]>;

/** Rule 16. */
export const enrich: Rule = function* ({ file }) {
  for (const { table, at } of tablesOf(file)) {
    const joins = table.enrich ?? [];
    for (const index of repeated(joins.map((join) => join?.table))) {
      yield {
        path: [...at, 'enrich', index, 'table'],
        what: 'this reference is joined twice',
        remedy: 'rename one of the two',
      };
    }
    const taken = new Set(present(table.metadata).map(({ as }) => as));
    for (const [index, join] of joins.entries()) {
      if (join === undefined) continue;
      yield* required(join, [...at, 'enrich', index]);
      yield* selection(join, [...at, 'enrich', index]);
      yield* results(join, [...at, 'enrich', index], taken);
    }
  }
};

function* required(join: EnrichDraft, at: Path): Iterable<Finding> {
  for (const field of ['uri', 'query'] as const) {
    if (empty(join.source?.[field]))
      yield { path: [...at, 'source', field], what: 'is missing, the reference is read with it', remedy: 'add it' };
  }
  if (join.on === undefined || Object.keys(join.on).length === 0) {
    yield {
      path: [...at, 'on'],
      what: 'is missing, expected the columns to join on',
      remedy: 'write on: [column], or on: {own: reference}',
    };
  }
}

function* selection(join: EnrichDraft, at: Path): Iterable<Finding> {
  const path = [...at, 'select'];
  const filtersOnly = join.joinType === 'left semi' || join.joinType === 'left anti';
  if (filtersOnly && join.select !== undefined) {
    yield { path, atKey: true, what: `${join.joinType} only filters and takes no columns`, remedy: 'remove it' };
    return;
  }
  if (!filtersOnly && (join.select === undefined || join.select.length === 0)) {
    yield { path, what: 'is missing, expected the columns to take', remedy: 'name them, or write select: ["*"]' };
    return;
  }
  if (join.select !== undefined && join.select.length > 1 && join.select.includes('*')) {
    yield { path, what: '"*" stands alone', remedy: 'remove the other columns, or the "*"' };
  }
  for (const index of repeated(join.select))
    yield { path: [...path, index], what: 'this column is named twice', remedy: 'remove one' };
}

function* results(join: EnrichDraft, at: Path, taken: Set<string | undefined>): Iterable<Finding> {
  const selected = present(join.select).map((column) => `${join.table}.${column}`);
  const all = join.select?.includes('*') === true;
  for (const column of Object.keys(join.as ?? {})) {
    if (selected.includes(column) || (all && column.startsWith(`${join.table}.`))) continue;
    yield {
      path: [...at, 'as', column],
      atKey: true,
      what: `expected a selected column as ${join.table ?? 'table'}.column`,
      remedy: 'add it to select, or remove it',
    };
  }
  const renamed = Object.entries(join.as ?? {});
  const plain = selected
    .filter((column) => !Object.hasOwn(join.as ?? {}, column))
    .map((column) => [column, column] as const);
  for (const [column, name] of [...renamed, ...plain]) {
    if (name === undefined) continue;
    if (taken.has(name))
      yield {
        path: [...at, 'as', column],
        what: `another column has the name "${name}"`,
        remedy: 'rename one of the two',
      };
    taken.add(name);
  }
}

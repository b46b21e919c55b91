import type { Path } from '../path.ts';
import type { Finding } from '../problem.ts';
import { type Rule, type TableDraft, tablesOf } from './rule.ts';

type FilterDraft = NonNullable<TableDraft['filter']>;

const FORMS = ['all', 'any', 'not', 'where'] as const;

/** Rule 11. */
export const filter: Rule = function* ({ file }) {
  for (const { table, at } of tablesOf(file)) {
    if (table.filter !== undefined) yield* node(table.filter, [...at, 'filter']);
  }
};

function* node(filter: FilterDraft, at: Path): Iterable<Finding> {
  const used = FORMS.filter((form) => filter[form] !== undefined);
  if (used.length !== 1) {
    const came = used.length === 0 ? 'none' : used.join(' and ');
    yield {
      path: at,
      what: `expected exactly one of ${FORMS.join(', ')}, came ${came}`,
      remedy: 'join conditions with all or any',
    };
  }
  for (const form of ['all', 'any'] as const) {
    if (filter[form]?.length === 0)
      yield {
        path: [...at, form],
        what: 'expected at least one condition, came none',
        remedy: 'add one, or remove the filter',
      };
    for (const [index, child] of (filter[form] ?? []).entries()) {
      if (child !== undefined) yield* node(child, [...at, form, index]);
    }
  }
  if (filter.not !== undefined) yield* node(filter.not, [...at, 'not']);
  if (filter.where !== undefined) yield* comparison(filter.where, [...at, 'where']);
}

function* comparison({ op, value }: NonNullable<FilterDraft['where']>, at: Path): Iterable<Finding> {
  const path = [...at, 'value'];
  switch (op) {
    case undefined:
      return;
    case 'in':
    case 'not_in':
      if (!Array.isArray(value) || value.length === 0) {
        yield { path, what: `expected a list that is not empty for ${op}`, remedy: 'write value: [a, b]' };
      }
      return;
    case 'is_null':
    case 'is_not_null':
      if (value !== undefined) yield { path, atKey: true, what: `${op} takes no value`, remedy: 'remove it' };
      return;
    case 'eq':
    case 'neq':
    case 'lt':
    case 'lte':
    case 'gt':
    case 'gte':
      if (value === undefined || Array.isArray(value)) {
        yield {
          path,
          what: `expected one value for ${op}`,
          remedy: value === undefined ? 'add it, or use is_null' : 'use in for a list',
        };
      }
  }
}

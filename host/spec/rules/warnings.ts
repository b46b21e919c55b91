import { present, type Rule, tablesOf, writeModeOf } from './rule.ts';

/** Rule 17: what works and is rarely meant. */
export const warnings: Rule = function* ({ file }) {
  const { schemas, discover } = file.source?.postgres ?? {};
  if (schemas !== undefined && discover !== true) {
    yield {
      path: ['source', 'postgres', 'schemas'],
      atKey: true,
      what: 'has no effect without discover',
      remedy: 'set discover: true, or remove it',
    };
  }
  for (const { table, at } of tablesOf(file)) {
    for (const [index, column] of (table.metadata ?? []).entries()) {
      if (column?.from !== 'op' || writeModeOf(table, file) !== 'upsert') continue;
      const what = 'in upsert a row shows only its last operation, and deletes are gone';
      yield { path: [...at, 'metadata', index, 'from'], what, remedy: 'use append, or remove the column' };
    }
    for (const column of Object.keys(table.cast ?? {})) {
      if (!present(table.primaryKey).includes(column)) continue;
      yield {
        path: [...at, 'cast', column],
        what: 'changes a key column: two keys may become one',
        remedy: 'make sure that they stay distinct',
      };
    }
  }
};

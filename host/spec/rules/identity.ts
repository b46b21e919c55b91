import { present, type Rule, tablesOf, writeModeOf } from './rule.ts';

const IDENTITY_PARTS: readonly string[] = ['stream', 'shard', 'sequence'];

/** Rule 10: what makes a repeated append a no-op is a place in the source's log, kept in metadata columns. */
export const identity: Rule = function* ({ file, show }) {
  for (const { table, at } of tablesOf(file)) {
    const path = [...at, 'identity'];
    if (writeModeOf(table, file) !== 'append-idempotent') {
      if (table.identity !== undefined) {
        yield {
          path,
          atKey: true,
          what: 'belongs to writeMode: append-idempotent',
          remedy: 'remove it, or set the write mode',
        };
      }
      continue;
    }
    if (table.identity === undefined || table.identity.length === 0) {
      yield {
        path,
        what: 'is missing, append-idempotent needs it',
        remedy: 'name metadata columns made from stream, shard or sequence',
      };
      continue;
    }
    const parts = new Map(present(table.metadata).map(({ as, from }) => [as, from]));
    for (const [index, column] of table.identity.entries()) {
      if (column === undefined || IDENTITY_PARTS.includes(parts.get(column) ?? '')) continue;
      const what = `expected a metadata column made from stream, shard or sequence, came ${show([...path, index])}`;
      yield { path: [...path, index], what, remedy: 'add it to metadata, or name another' };
    }
    const used = table.identity.map((column) => parts.get(column));
    if (!used.includes('shard') && !used.includes('sequence')) {
      yield {
        path,
        what: 'expected shard or sequence in it, came neither: changes of one stream would be one',
        remedy: 'add the column made from sequence',
      };
    }
  }
};

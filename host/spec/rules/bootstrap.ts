import { type Rule, tablesOf } from './rule.ts';

/** Rule 15. */
export const bootstrap: Rule = function* ({ file }) {
  for (const { table, at } of tablesOf(file)) {
    const { mode = 'snapshot', startAt, position } = table.bootstrap ?? {};
    const field = (name: string) => [...at, 'bootstrap', name];
    if (mode === 'snapshot') {
      for (const [name, value] of [
        ['startAt', startAt],
        ['position', position],
      ] as const) {
        if (value === undefined) continue;
        yield {
          path: field(name),
          atKey: true,
          what: 'belongs to adopt and adopt-verify; a snapshot finds its own start',
          remedy: 'remove it, or set the mode',
        };
      }
    } else if (startAt === 'explicit' && position === undefined) {
      yield {
        path: field('position'),
        what: 'is missing, an explicit start needs it',
        remedy: 'add it, or write startAt: current',
      };
    } else if (startAt !== 'explicit' && position !== undefined) {
      yield {
        path: field('position'),
        atKey: true,
        what: 'belongs to startAt: explicit',
        remedy: 'remove it, or write startAt: explicit',
      };
    }
    if (table.bootstrap?.mode === 'snapshot' && file.source?.snapshotMode === 'none') {
      yield {
        path: field('mode'),
        what: 'source.snapshotMode: none takes no snapshot',
        remedy: 'remove one of the two',
      };
    }
  }
};

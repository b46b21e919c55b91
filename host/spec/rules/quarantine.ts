import { DEAD_LETTERS, fullTarget, namespaceOf } from '../names.ts';
import type { SinkType } from '../schema/sink.ts';
import { type Rule, tablesOf, writeModeOf } from './rule.ts';

/** What `onPoison: quarantine` asks of a table and its sink. */
export const quarantine: Rule = function* ({ file, sink }) {
  const namespace = namespaceOf(file.sink);
  const tables = [...tablesOf(file)];
  const isOn = tables.some(({ table }) => table.onPoison === 'quarantine');
  for (const { table, at } of tables) {
    if (isOn && table.target && fullTarget(table.target, namespace) === fullTarget(DEAD_LETTERS, namespace)) {
      yield { path: [...at, 'target'], what: 'is the table of the dead letters', remedy: 'name another target' };
    }
    if (table.onPoison !== 'quarantine') continue;
    const path = [...at, 'onPoison'];
    if (sink !== undefined && CANNOT_BE_READ_BACK.has(sink)) {
      const what = `quarantine needs a destination that can be read back, which ${sink} is not`;
      yield { path, what, remedy: 'write pause or stop' };
    }
    if (writeModeOf(table, file) !== 'upsert') {
      const what =
        'quarantine needs writeMode: upsert: a row that is set aside is followed by its key, and a history would lose its order';
      yield { path, what, remedy: 'write pause or stop, or use upsert' };
    }
  }
};

/** Of a driver from outside its plugin.yaml tells, when it is found. */
const CANNOT_BE_READ_BACK: ReadonlySet<SinkType | 'external'> = new Set(['stdout', 'kafka'] as const);

import type { CheckpointStore } from './store.ts';

/** Forgets everything with the process: for trials, and for sinks that are rebuilt at each start. */
export function memoryStore(): CheckpointStore {
  const writers = new Map<string, Map<string, string>>();
  const tablesOf = (writer: string) => {
    if (!writers.has(writer)) writers.set(writer, new Map());
    return writers.get(writer)!;
  };
  return {
    read: (writer, table) => tablesOf(writer).get(table) ?? null,
    write: (writer, table, checkpoint) => void tablesOf(writer).set(table, checkpoint),
    remove: (writer, tables) => {
      const present = [...tablesOf(writer).keys()].filter((table) => tables === 'all' || tables.includes(table));
      for (const table of present) tablesOf(writer).delete(table);
      return present;
    },
    close: () => {},
  };
}

import { dirname } from 'node:path';
import { UrutauError } from '@urutau/contract';
import Database from 'libsql';
import { makeFolder } from '../make-folder.ts';
import type { CheckpointStore } from './store.ts';

/** One sqlite file; a write is on the disk when it returns. What the file refuses is `sink-unavailable`, so it is tried again. */
export function sqliteStore(path: string): CheckpointStore {
  const store = orUnavailable(path, () => openStore(path));
  return {
    read: (writer, table) => orUnavailable(path, () => store.read(writer, table)),
    write: (writer, table, checkpoint) => orUnavailable(path, () => store.write(writer, table, checkpoint)),
    remove: (writer, tables) => orUnavailable(path, () => store.remove(writer, tables)),
    close: () => store.close(),
  };
}

function orUnavailable<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new UrutauError('sink-unavailable', `positions cannot be kept in ${path}: ${(cause as Error).message}`, {
      cause,
      remedy:
        'Make room on that disk, and let this user write to the file and its folder; the host tries again by itself.',
    });
  }
}

function openStore(path: string): CheckpointStore {
  makeFolder(dirname(path));
  const database = new Database(path);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec(
    'CREATE TABLE IF NOT EXISTS checkpoints (writer TEXT, target TEXT, checkpoint TEXT NOT NULL, PRIMARY KEY (writer, target))',
  );
  const select = database.prepare('SELECT checkpoint FROM checkpoints WHERE writer = ? AND target = ?');
  const upsert = database.prepare(
    'INSERT INTO checkpoints VALUES (?, ?, ?) ON CONFLICT (writer, target) DO UPDATE SET checkpoint = excluded.checkpoint',
  );
  const list = database.prepare('SELECT target FROM checkpoints WHERE writer = ? ORDER BY target');
  const remove = database.prepare('DELETE FROM checkpoints WHERE writer = ? AND target = ?');
  return {
    read: (writer, table) => (select.get(writer, table) as { checkpoint: string } | undefined)?.checkpoint ?? null,
    write: (writer, table, checkpoint) => void upsert.run(writer, table, checkpoint),
    remove: (writer, tables) => {
      const present = (list.all(writer) as { target: string }[])
        .map(({ target }) => target)
        .filter((target) => tables === 'all' || tables.includes(target));
      for (const target of present) remove.run(writer, target);
      return present;
    },
    close: () => database.close(),
  };
}

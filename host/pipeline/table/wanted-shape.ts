import { kindOf, type TableShape, UrutauError } from '@urutau/contract';
import type { TableSettings } from './table.ts';

/**
 * A table's shape as it is written: the key that the pipeline file names wins over the source's own. Throws when the
 * table cannot be written in its mode. `fromLog`: its changes come from a log that may leave out large values.
 */
export function wantedShape(shape: TableShape, settings: TableSettings, fromLog: boolean): TableShape {
  const primaryKey = settings.primaryKey ? [...settings.primaryKey] : shape.primaryKey;
  const names = new Set(shape.fields.map(({ name }) => name));
  const missing = primaryKey.filter((name) => !names.has(name));
  if (missing.length > 0) {
    throw new UrutauError('schema-unsupported', `${settings.source} has no column ${missing.join(', ')} for its key`, {
      table: settings.source,
      remedy: `Name columns of the table in primaryKey: it has ${[...names].join(', ')}.`,
    });
  }
  if (settings.writeMode === 'upsert' && primaryKey.length === 0) {
    throw new UrutauError('precondition-failed', `${settings.source} has no key, which upsert needs`, {
      table: settings.source,
      remedy: 'Give the table a primary key, name its key columns in primaryKey, or use writeMode: append.',
    });
  }
  if (settings.writeMode === 'upsert' && fromLog) requireOldKey(shape, primaryKey, settings.source);
  if (settings.writeMode !== 'upsert' && fromLog) requireFullImage(shape, settings.source);
  return { ...shape, primaryKey };
}

/** A change of the key must say which key it was: the log tells that of the source's own key, or of whole rows. */
function requireOldKey({ before, primaryKey: own }: TableShape, primaryKey: readonly string[], table: string): void {
  const unheld = primaryKey.filter((name) => !own.includes(name));
  if (before === 'full' || unheld.length === 0) return;
  throw new UrutauError(
    'precondition-failed',
    `the changes of ${table} do not hold the old value of ${unheld.join(', ')}, which primaryKey names`,
    { table, remedy: `Run ALTER TABLE ${table} REPLICA IDENTITY FULL, or use the source's own key.` },
  );
}

/**
 * A value that the log leaves out is looked up where there is no full before-image (UNCH-3). In upsert a later change
 * mends what the look-up found too new; in append that row would stay wrong.
 */
function requireFullImage({ fields, before, primaryKey }: TableShape, table: string): void {
  const large = fields.filter(({ name, type }) => !primaryKey.includes(name) && LARGE.has(kindOf(type)));
  if (before === 'full' || large.length === 0) return;
  const names = large.map(({ name }) => name).join(', ');
  throw new UrutauError(
    'precondition-failed',
    `${table} is written in append, and its changes may leave out the values of ${names}, which no look-up can give as they were then`,
    {
      table,
      remedy: `Make its changes hold the whole row before (ALTER TABLE ${table} REPLICA IDENTITY FULL), or use writeMode: upsert.`,
    },
  );
}

/** Kinds whose values a source may keep out of line. */
const LARGE: ReadonlySet<string> = new Set(['string', 'binary', 'json']);

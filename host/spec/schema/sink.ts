import { z } from 'zod';
import { driver, tls } from './source.ts';
import { block, duration, flag, mapOf, oneOf, size, text, wait, whole } from './values.ts';

export const SINK_TYPES = [
  'iceberg+rest',
  'iceberg+local',
  'clickhouse',
  'couchbase',
  'postgres',
  'kafka',
  'stdout',
] as const;
export type SinkType = (typeof SINK_TYPES)[number];

export const WRITE_MODES = ['upsert', 'append', 'append-idempotent'] as const;

const defaults = block('Defaults for every table.', {
  writeMode: oneOf('How rows are written, default upsert.', WRITE_MODES),
  targetFileSize: size('Size at which a data file is closed.'),
});

const flush = block('When rows are committed: whichever comes first.', {
  rows: whole('After so many rows, default 100000.', { min: 1 }),
  bytes: size('After so many bytes, default 32Mi.'),
  interval: wait('After so much time, default 5s.'),
});

const maintenance = block('Upkeep of Iceberg tables.', {
  enabled: flag('Whether tables are kept up.'),
  compaction: block('Joining of small files.', {
    interval: duration('Between two runs, default 5m.'),
    targetFileSize: size('Size of a joined file, default 512Mi.'),
    minInputFiles: whole('Fewest files to join, default 5.', { min: 1 }),
  }),
  snapshotExpiry: block('Dropping of old snapshots.', {
    interval: duration('Between two runs, default 10m.'),
    retainLast: whole('Snapshots that always stay, default 1.', { min: 1 }),
    maxAge: duration('Age from which snapshots are dropped, default 168h.'),
  }),
  orphanCleanup: block('Removal of files that no snapshot names.', {
    interval: duration('Between two runs, default 1h.'),
    olderThan: duration('Age from which files are removed, default 72h, at least 1h.'),
  }),
});

export const sink = block('Where rows go.', {
  type: oneOf('A built-in sink driver, default iceberg+rest.', SINK_TYPES),
  driver: driver('An external sink driver: its folder, or the name of an installed one.'),
  config: mapOf('Configuration of the external driver, passed on as it is.', z.unknown()),
  uri: text('Address of the destination.'),
  namespace: text('Goes before each target that has no dot: namespace, schema, database, scope or topic prefix.'),
  warehouse: text('Iceberg: warehouse of the catalog.'),
  clientId: text('Iceberg REST: client of the catalog.'),
  clientSecret: text('Iceberg REST: secret of the client.'),
  scope: text('Iceberg REST: scope of the token.'),
  commitMode: oneOf('Couchbase: fast, or atomic with the position.', ['fast', 'atomic']),
  evolveSchema: flag('Iceberg: adds and widens columns.'),
  deleteMode: oneOf('Iceberg: how deletes are written.', ['positional', 'equality']),
  formatVersion: z
    .union([z.literal(2), z.literal(3)], { error: '2 or 3' })
    .describe('Iceberg: version of the table format.'),
  tls: tls('Encrypted connection.'),
  tablePrefix: text('Goes before each table’s own name.'),
  discard: flag('stdout: counts the rows and throws them away, for benchmarks.'),
  defaults,
  flush,
  maintenance,
});

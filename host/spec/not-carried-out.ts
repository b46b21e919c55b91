import { type Path, valueAt } from './path.ts';
import type { Pipeline } from './pipeline.ts';
import { type Problem, placed } from './problem.ts';

/** Every field of a valid pipeline that this version does not carry out, so that `run` can refuse it by name. */
export function notCarriedOut({ file, source, sink, written }: Pipeline): Problem[] {
  const builtin = { source: source.driver.kind === 'builtin', sink: sink.driver.kind === 'builtin' };
  const findings = NOT_CARRIED_OUT.filter(
    ({ builtinOnly }) => builtinOnly === undefined || builtin[builtinOnly],
  ).flatMap(({ field, unless = [], reason }) =>
    expand(field.split('.'), written.file).flatMap((path) => {
      const value = valueAt(written.file, path);
      if (value === undefined || unless.includes(value)) return [];
      const remedy = unless.length === 0 ? 'remove it' : `remove it or use ${unless.join(', ')}`;
      return [{ path, what: `this version does not carry it out: ${reason}`, remedy }];
    }),
  );
  return placed(findings, { file, locate: ({ path }) => written.locate(path) });
}

interface NotCarriedOut {
  /** `*` stands for each item of a list. */
  readonly field: string;
  /** Values that are carried out; without them none is. */
  readonly unless?: readonly unknown[];
  readonly reason: string;
  /** The field is the driver's, and one from outside may carry it out. */
  readonly builtinOnly?: 'source' | 'sink';
}

/** Delete a line with the change that carries its field out. */
const NOT_CARRIED_OUT: readonly NotCarriedOut[] = [
  {
    field: 'source.kind',
    unless: ['postgres'],
    reason: 'this source driver is not built in yet',
    builtinOnly: 'source',
  },
  { field: 'source.snapshotUri', reason: 'snapshots are read from the address of the log', builtinOnly: 'source' },
  {
    field: 'source.maxReconnectAttempts',
    reason: 'a lost connection restarts the driver, and supervision says how often',
    builtinOnly: 'source',
  },
  { field: 'source.postgres.schemas', reason: 'tables are listed, not discovered' },
  { field: 'source.postgres.discover', unless: [false], reason: 'tables are listed, not discovered' },
  { field: 'source.postgres.ssh', reason: 'there is no SSH tunnel', builtinOnly: 'source' },
  {
    field: 'source.postgres.replicaIdentity',
    unless: ['keep'],
    reason: 'the replica identity of a table is never changed',
    builtinOnly: 'source',
  },
  {
    field: 'source.postgres.cdc.plugin',
    unless: ['pgoutput'],
    reason: 'only the pgoutput plugin is decoded',
    builtinOnly: 'source',
  },
  {
    field: 'source.postgres.cdc.initialWaitTime',
    reason: 'the reader waits for the first change without a limit',
    builtinOnly: 'source',
  },
  {
    field: 'sink.type',
    unless: ['postgres', 'stdout'],
    reason: 'this sink driver is not built in yet',
    builtinOnly: 'sink',
  },
  { field: 'sink.commitMode', reason: 'there is no Couchbase sink', builtinOnly: 'sink' },
  { field: 'sink.evolveSchema', unless: [false], reason: 'targets are not altered' },
  { field: 'sink.deleteMode', reason: 'there is no Iceberg sink', builtinOnly: 'sink' },
  { field: 'sink.formatVersion', reason: 'there is no Iceberg sink', builtinOnly: 'sink' },
  { field: 'sink.maintenance', reason: 'tables are not kept up' },
  { field: 'sink.defaults.writeMode', unless: ['upsert', 'append'], reason: 'identity columns are not written' },
  { field: 'sink.defaults.targetFileSize', reason: 'no sink writes data files' },
  { field: 'tables.*.writeMode', unless: ['upsert', 'append'], reason: 'identity columns are not written' },
  { field: 'tables.*.onInvalid', unless: ['error'], reason: 'values are never replaced' },
  { field: 'tables.*.schemaChange', unless: ['pause'], reason: 'targets are not altered' },
  { field: 'tables.*.filter', reason: 'rows are not filtered' },
  { field: 'tables.*.filterImmutable', unless: [false], reason: 'rows are not filtered' },
  { field: 'tables.*.columnFilter', reason: 'every column is taken' },
  { field: 'tables.*.cast', reason: 'columns keep their types' },
  { field: 'tables.*.metadata', reason: 'metadata columns are not added' },
  { field: 'tables.*.columns', reason: 'columns come from the source' },
  { field: 'tables.*.identity', reason: 'identity columns are not written' },
  { field: 'tables.*.partitionBy', reason: 'no sink partitions its tables' },
  { field: 'tables.*.workers.number', unless: [0, 1], reason: 'a table has one writer' },
  { field: 'tables.*.workers.max', unless: [0, 1], reason: 'a table has one writer' },
  { field: 'tables.*.chunkColumn', reason: 'the source divides a snapshot by itself' },
  { field: 'tables.*.mode', unless: ['cdc'], reason: 'tables follow the log' },
  { field: 'tables.*.cursor', reason: 'tables follow the log' },
  { field: 'tables.*.bootstrap.mode', unless: ['snapshot'], reason: 'a target is not adopted' },
  { field: 'tables.*.enrich', reason: 'rows are not joined' },
  { field: 'pausedLogLimit', reason: 'a paused table holds the log back without a limit' },
];

/** The paths that a pattern stands for in this file. */
function expand(pattern: readonly string[], file: unknown): Path[] {
  const star = pattern.indexOf('*');
  if (star === -1) return [pattern];
  const list = valueAt(file, pattern.slice(0, star));
  const count = Array.isArray(list) ? list.length : 0;
  return Array.from({ length: count }, (_, index) => [...pattern.slice(0, star), index, ...pattern.slice(star + 1)]);
}

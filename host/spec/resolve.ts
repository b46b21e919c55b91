import { resolve as resolvePath } from 'node:path';
import type { SupervisionSettings } from '../supervisor/supervisor.ts';
import { parseDuration, parseSize } from './durations-and-sizes.ts';
import { DEAD_LETTERS, fullTarget, namespaceOf } from './names.ts';
import type {
  BuiltinDriver,
  DriverRef,
  Pipeline,
  PipelineSink,
  PipelineSource,
  StoreSpec,
  TableSpec,
} from './pipeline.ts';
import type { PipelineFile, SinkBlock, SourceBlock, TableBlock } from './schema/pipeline-file.ts';
import type { SinkType } from './schema/sink.ts';
import type { SourceKind } from './schema/source.ts';

export interface ResolveOptions {
  readonly file: string;
  readonly directory: string;
  /** Absolute driver folders that the command line named; each takes the place of the file's driver. */
  readonly sourcePlugin?: string;
  readonly sinkPlugin?: string;
  readonly locate: Pipeline['written']['locate'];
}

/** Fills in every default of a checked file whose secrets are sealed. Pure; the caller has found no problem in it. */
export function resolvePipeline(written: PipelineFile, options: ResolveOptions): Pipeline {
  const { file, directory, locate } = options;
  return deepFrozen({
    name: written.pipeline,
    file,
    directory,
    source: sourceOf(written.source, options),
    sink: sinkOf(written.sink, options),
    tables: (written.tables ?? []).map((table) => tableOf(table, written)),
    store: storeOf(written.store, directory),
    windowBytes: bytes(written.window ?? '64Mi'),
    pausedLogLimitBytes: written.pausedLogLimit === undefined ? undefined : bytes(written.pausedLogLimit),
    supervision: supervisionOf(written.supervision ?? {}),
    written: { file: written, locate },
  });
}

const SOURCE_DRIVERS: Readonly<Record<SourceKind, BuiltinDriver>> = {
  postgres: 'postgres',
  mysql: 'mysql',
  mariadb: 'mysql',
  kafka: 'kafka',
};

const SINK_DRIVERS: Readonly<Record<SinkType, BuiltinDriver>> = {
  'iceberg+rest': 'iceberg',
  'iceberg+local': 'iceberg',
  clickhouse: 'clickhouse',
  couchbase: 'couchbase',
  postgres: 'postgres',
  kafka: 'kafka',
  stdout: 'stdout',
};

function sourceOf(source: SourceBlock, { directory, sourcePlugin }: ResolveOptions): PipelineSource {
  const { kind, driver, config, snapshotMode, onTruncate: _, ...own } = source;
  return {
    kind,
    driver: driverOf({ plugin: sourcePlugin, builtin: kind && SOURCE_DRIVERS[kind], external: driver, directory }),
    config: kind === undefined ? (config ?? {}) : own,
    snapshotMode: snapshotMode ?? (kind === 'kafka' ? 'none' : 'initial'),
  };
}

function sinkOf(sink: SinkBlock, { directory, sinkPlugin }: ResolveOptions): PipelineSink {
  const { type, driver, config, defaults: _, flush, maintenance: __, ...own } = sink;
  return {
    type,
    driver: driverOf({ plugin: sinkPlugin, builtin: type && SINK_DRIVERS[type], external: driver, directory }),
    config: type === undefined ? (config ?? {}) : own,
    namespace: namespaceOf(sink),
    deadLetters: fullTarget(DEAD_LETTERS, namespaceOf(sink)),
    flush: {
      rows: flush?.rows ?? 100_000,
      bytes: bytes(flush?.bytes ?? '32Mi'),
      intervalMs: ms(flush?.interval ?? '5s'),
    },
  };
}

function driverOf({ plugin, builtin, external, directory }: DriverChoice): DriverRef {
  if (plugin !== undefined) return { kind: 'folder', directory: plugin };
  if (builtin !== undefined) return { kind: 'builtin', name: builtin };
  const text = external!; // The rules demand one of the three.
  if (/^\.{0,2}\/|^\.{1,2}$/.test(text)) return { kind: 'folder', directory: resolvePath(directory, text) };
  const at = text.lastIndexOf('@');
  // The first character may be the @ of a scoped name.
  return at > 0
    ? { kind: 'installed', name: text.slice(0, at), version: text.slice(at + 1) }
    : { kind: 'installed', name: text };
}

interface DriverChoice {
  readonly plugin: string | undefined;
  readonly builtin: BuiltinDriver | undefined;
  readonly external: string | undefined;
  readonly directory: string;
}

function tableOf(table: TableBlock, { source, sink }: PipelineFile): TableSpec {
  return {
    source: table.source,
    target: fullTarget(table.target, namespaceOf(sink)),
    primaryKey: table.primaryKey,
    writeMode: table.writeMode ?? sink.defaults?.writeMode ?? 'upsert',
    onDelete: table.onDelete ?? 'record',
    onPoison: table.onPoison ?? 'pause',
    onInvalid: table.onInvalid ?? 'error',
    onTruncate: table.onTruncate ?? source.onTruncate ?? 'fail',
    schemaChange: table.schemaChange ?? 'pause',
    createIfNotExists: table.createIfNotExists ?? true,
    chunkRows: table.chunkRows,
  };
}

function storeOf(store: PipelineFile['store'], directory: string): StoreSpec {
  if (store?.kind === 'memory') return { kind: 'memory' };
  return { kind: 'sqlite', path: store?.path === undefined ? undefined : resolvePath(directory, store.path) };
}

function supervisionOf({
  heartbeat,
  misses,
  ready,
  stop,
  backoff,
  breaker,
}: NonNullable<PipelineFile['supervision']>): SupervisionSettings {
  return {
    heartbeatMs: ms(heartbeat ?? '2s'),
    misses: misses ?? 7,
    readyMs: ms(ready ?? '30s'),
    stopMs: ms(stop ?? '15s'),
    backoff: { firstMs: ms(backoff?.first ?? '1s'), maxMs: ms(backoff?.max ?? '60s') },
    breaker: {
      failures: breaker?.failures ?? 3,
      windowMs: ms(breaker?.window ?? '5m'),
      holdMs: ms(breaker?.hold ?? '60s'),
      // biome-ignore lint/suspicious/noThenProperty: the field of the pipeline file has this name.
      then: breaker?.then ?? 'hold',
    },
  };
}

function ms(text: string): number {
  return parseDuration(text)!;
}

function bytes(value: string | number): number {
  return parseSize(value)!;
}

function deepFrozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const field of Object.values(value)) deepFrozen(field);
  return Object.freeze(value);
}

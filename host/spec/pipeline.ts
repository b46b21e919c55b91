import type { SupervisionSettings } from '../supervisor/supervisor.ts';
import type { Position } from './locate.ts';
import type { Path } from './path.ts';
import type { PipelineFile, TableBlock } from './schema/pipeline-file.ts';
import type { SinkType } from './schema/sink.ts';
import type { SourceKind } from './schema/source.ts';

/** One replication job, checked, with every default filled in. Deeply frozen. */
export interface Pipeline {
  readonly name: string;
  /** The pipeline file, as it was named. */
  readonly file: string;
  /** Absolute path of the folder of the file; relative paths in it start here. */
  readonly directory: string;
  readonly source: PipelineSource;
  readonly sink: PipelineSink;
  readonly tables: readonly TableSpec[];
  readonly store: StoreSpec;
  /** Most bytes in flight between source and destination. */
  readonly windowBytes: number;
  readonly pausedLogLimitBytes?: number;
  readonly supervision: SupervisionSettings;
  /** What the file said, secrets sealed, with the place of each field. */
  readonly written: { readonly file: PipelineFile; locate(path: Path): Position };
}

export interface PipelineSource {
  /** Undefined with an external driver. */
  readonly kind?: SourceKind;
  readonly driver: DriverRef;
  /** For the driver; holds `Secret`s, so give it to `revealed` before it is written to the driver's config file. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly snapshotMode: 'initial' | 'none';
}

export interface PipelineSink {
  /** Undefined with an external driver. */
  readonly type?: SinkType;
  readonly driver: DriverRef;
  /** As that of the source. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly namespace?: string;
  /** The table of dead letters, by its full name (`onPoison: quarantine`). */
  readonly deadLetters: string;
  /** A commit follows whichever comes first. */
  readonly flush: { readonly rows: number; readonly bytes: number; readonly intervalMs: number };
}

export interface TableSpec {
  /** The source's own full name. */
  readonly source: string;
  /** The destination's full name, with the namespace. */
  readonly target: string;
  /** In key order; undefined means the source's own key, an empty list none. */
  readonly primaryKey?: readonly string[];
  readonly writeMode: NonNullable<TableBlock['writeMode']>;
  readonly onDelete: NonNullable<TableBlock['onDelete']>;
  readonly onPoison: NonNullable<TableBlock['onPoison']>;
  readonly onInvalid: NonNullable<TableBlock['onInvalid']>;
  readonly onTruncate: NonNullable<TableBlock['onTruncate']>;
  readonly schemaChange: NonNullable<TableBlock['schemaChange']>;
  readonly createIfNotExists: boolean;
  /** Rows of one snapshot range; undefined leaves it to the source. */
  readonly chunkRows?: number;
}

export type DriverRef =
  | { readonly kind: 'builtin'; readonly name: BuiltinDriver }
  | { readonly kind: 'folder'; readonly directory: string }
  | { readonly kind: 'installed'; readonly name: string; readonly version?: string };

export type BuiltinDriver = 'postgres' | 'mysql' | 'kafka' | 'iceberg' | 'clickhouse' | 'couchbase' | 'stdout';

export type StoreSpec =
  | { readonly kind: 'memory' }
  /** Without a path the file lies below the state folder. A path is absolute. */
  | { readonly kind: 'sqlite'; readonly path?: string };

import type {
  AssignAnswer,
  AssignRequest,
  Base64,
  Capabilities,
  CheckpointAnswer,
  CommitRequest,
  CompareAnswer,
  CompareRequest,
  EnsureAnswer,
  EnsureRequest,
  Envelope,
  PlanAnswer,
  PlanRequest,
  ProgressAnswer,
  ReadDescriptor,
  ReadMetadata,
  StatusAnswer,
  TableListing,
  TableShape,
  TeardownAnswer,
  TeardownRequest,
  WriteDescriptor,
} from '@urutau/contract';
import type { EncodedBatch } from './columns/change-batch-builder.ts';
import type { ChangeBatch } from './columns/change-batch-reader.ts';
import type { Log } from './log.ts';

/** One batch on its way out. `batch` is null where only the envelope has something to say (an event, a position). */
export interface SourceBatch {
  batch: EncodedBatch | null;
  /** `seq`, `rows` and `ops` are filled in when the batch is sent. */
  envelope: Omit<Envelope, 'seq' | 'rows' | 'ops'>;
}

/** The answer to GetFlightInfo: what will be read, and how to begin. */
export interface Read {
  shape: TableShape;
  metadata: ReadMetadata;
  totalRecords?: number;
  /**
   * Called when the host reads (DoGet). Iterated only as fast as the host takes, so a source never buffers here.
   * `signal` aborts when the host closes the stream; the iterator's `return` is called too.
   */
  open(signal: AbortSignal): AsyncIterable<SourceBatch>;
  /** Called when the host cancels without reading. */
  release?(): void;
}

/** What every driver has, whatever its role. */
interface Driver {
  /** Extra fields for `urutau.describe`. */
  capabilities?: Capabilities;
  /** Ends in order: finish what is in flight, close connections. Called once. */
  close(): Promise<void>;
  status?(): Pick<StatusAnswer, 'state' | 'tables'>;
  teardown?(request: TeardownRequest): Promise<TeardownAnswer>;
  /** OpenMetrics text (`metrics/1`). */
  metrics?(): string | Promise<string>;
}

/**
 * A source. The three first members make a base driver; each optional one announces its extension by being there.
 * Snapshot reads carry rows of `shape`; changes and chunks carry change records.
 */
export interface SourceDriver extends Driver {
  listTables(): Promise<TableListing[]>;
  read(descriptor: ReadDescriptor): Promise<Read>;
  flush?(): Promise<void>;
  assign?(request: AssignRequest): Promise<AssignAnswer>;
  confirm?(tables: Record<string, Base64>): Promise<void>;
  /** With `progress`, makes `progress/1`. */
  head?(): Promise<Base64>;
  progress?(tables: string[]): Promise<ProgressAnswer>;
  /** With chunk reads, makes `chunks/1`. */
  plan?(request: PlanRequest): Promise<PlanAnswer>;
  compare?(request: CompareRequest): Promise<CompareAnswer>;
}

/** Takes the batches of one write stream. The next batch comes when the promise of the last one is done. */
export interface TableWriter {
  /** Rows (`batch`), or an envelope alone: an event, or a cut between rows. */
  write(batch: ChangeBatch | null, envelope: Envelope): Promise<void>;
  /** The stream ended in order; everything has been given to `write`. */
  end(): Promise<void>;
  /** The stream broke, or a newer one took over: forget what is not committed. */
  discard(): Promise<void>;
}

/** A sink. `openWriter` and `flush` make a base driver; `ensure` and `checkpoint` with `commit` announce extensions. */
export interface SinkDriver extends Driver {
  /** Throws `schema-unsupported` when the table's rows cannot be written. */
  openWriter(descriptor: WriteDescriptor, shape: TableShape): Promise<TableWriter>;
  /** Resolves when all that was received is durable. */
  flush(): Promise<void>;
  listTables?(): Promise<TableListing[]>;
  ensure?(request: EnsureRequest, shape: TableShape): Promise<EnsureAnswer>;
  checkpoint?(writer: string, tables: string[]): Promise<CheckpointAnswer>;
  /**
   * The rows up to the cut `through` have been given to the stream's writer. Makes them durable with the checkpoint,
   * or throws `fenced` with the stored one. With `through` as in the last commit only the checkpoint moves.
   */
  commit?(request: CommitRequest): Promise<void>;
}

/** What a driver is told at its start. `config` has passed the driver's own schema. */
export interface DriverContext<Config> {
  config: Config;
  log: Log;
  pluginDir: string;
  /** The host's own standard output, where the manifest asks for it (OUT-1). */
  hostStdout: number | null;
}

/** Structural type of a validator such as a zod schema. */
export interface ConfigSchema<Config> {
  parse(value: unknown): Config;
}

export interface SourceDefinition<Config> {
  role: 'source';
  name: string;
  version: string;
  config: ConfigSchema<Config>;
  start(context: DriverContext<Config>): Promise<SourceDriver>;
}

export interface SinkDefinition<Config> {
  role: 'sink';
  name: string;
  version: string;
  config: ConfigSchema<Config>;
  start(context: DriverContext<Config>): Promise<SinkDriver>;
}

export type DriverDefinition<Config> = SourceDefinition<Config> | SinkDefinition<Config>;

export function defineSource<Config>(definition: Omit<SourceDefinition<Config>, 'role'>): SourceDefinition<Config> {
  return { role: 'source', ...definition };
}

export function defineSink<Config>(definition: Omit<SinkDefinition<Config>, 'role'>): SinkDefinition<Config> {
  return { role: 'sink', ...definition };
}

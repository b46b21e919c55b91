// Generated from contract/registry by `npm run generate`. Do not edit.

/** Names of the Flight actions. */
export const ACTION = {
  /** Names the tables that the driver can serve. */
  listTables: 'urutau.list_tables',
  /** State, offsets and lag; never fails. */
  status: 'urutau.status',
  /** Shows that the process is alive; answers within a second under full load. */
  heartbeat: 'urutau.heartbeat',
  /** Succeeds only when all that was received is durable. */
  flush: 'urutau.flush',
  /** Ends the process in order: refuse new calls, finish the record in flight, exit 0. */
  shutdown: 'urutau.shutdown',
  /** Flight's own action: frees what a FlightInfo reserved. */
  cancelFlightInfo: 'CancelFlightInfo',
  /** Announces extensions and capabilities. */
  describe: 'urutau.describe',
  /** Gives the source its whole set of tables with their resume points. */
  assign: 'urutau.assign',
  /** Tells the source which offsets are durable in the destination; only this releases its log. */
  confirm: 'urutau.confirm',
  /** The end of the source's log now. */
  head: 'urutau.head',
  /** How far each table's changes have been decoded. */
  progress: 'urutau.progress',
  /** Divides a table into ranges that outlive the process. */
  plan: 'urutau.plan',
  /** Orders pairs of offsets; null is incomparable. */
  compare: 'urutau.compare',
  /** Makes the target ready for a schema, or says why it cannot be. */
  ensure: 'urutau.ensure',
  /** Reads the checkpoints that live in the destination. */
  checkpoint: 'urutau.checkpoint',
  /** Makes the rows up to a cut durable together with a checkpoint. */
  commit: 'urutau.commit',
  /** Names, and unless asked to check only removes, what the pipeline made beside the data. */
  teardown: 'urutau.teardown',
  /** Makes one writer's slice ready for a common commit. */
  stage: 'urutau.stage',
  /** Compacts, expires and cleans a target. */
  maintain: 'urutau.maintain',
  /** OpenMetrics text. */
  metrics: 'urutau.metrics',
} as const;
export type ActionName = (typeof ACTION)[keyof typeof ACTION];

/** Names of the extensions that a driver may announce. */
export const EXTENSION = {
  /** Schemas carry key, kind and source type as Arrow metadata. */
  tableSchema: 'table-schema/1',
  /** Each batch carries its counts and its resume point beside the rows, so that a relay need not decode it. */
  envelope: 'envelope/1',
  /** One log reader for a whole set of tables, checked before it starts. */
  assign: 'assign/1',
  /** The log is released only by what is durable. */
  confirm: 'confirm/1',
  /** Head of the log and decoded position per table. */
  progress: 'progress/1',
  /** Resumable, parallel snapshots that need no lock. */
  chunks: 'chunks/1',
  /** The source orders its own offsets. */
  compare: 'compare/1',
  /** Targets are created and checked against a schema. */
  ensure: 'ensure/1',
  /** The position lives with the data. */
  commit: 'commit/1',
  /** Many writers of one table, one commit. */
  stage: 'stage/1',
  /** Table maintenance. */
  maintain: 'maintain/1',
  /** Driver metrics, exported by the host. */
  metrics: 'metrics/1',
} as const;
export type ExtensionName = (typeof EXTENSION)[keyof typeof EXTENSION];

/** Environment variables that the host sets for a driver. */
export const ENV = {
  /** `source` or `sink`. */
  stage: 'URUTAU_STAGE',
  /** The bearer: base64 of 32 random bytes, opaque to the driver. */
  token: 'URUTAU_TOKEN',
  /** Absolute path of the config file (JSON, mode 0600). */
  config: 'URUTAU_CONFIG',
  /** Absolute path of the driver's folder. */
  pluginDir: 'URUTAU_PLUGIN_DIR',
  /** The highest protocol version that the host speaks. */
  protocolVersion: 'URUTAU_PROTOCOL_VERSION',
  /** Path of the unix socket or named pipe to listen on; exactly one of this and URUTAU_BIND is set. */
  socket: 'URUTAU_SOCKET',
  /** TCP address to listen on, such as `127.0.0.1:0`. */
  bind: 'URUTAU_BIND',
  /** `stdin`: end-of-file on standard input means that the host is gone. */
  lifeline: 'URUTAU_LIFELINE',
  /** Number of the file descriptor that is the host's own standard output. */
  hostStdout: 'URUTAU_HOST_STDOUT',
  /** `point[:nth][:act]`: a fault to play, once; set for the first process of a driver only. */
  fault: 'URUTAU_FAULT',
} as const;

/** Keys of Arrow schema and field metadata. */
export const METADATA = {
  /** Changes when the table's shape changes. */
  schemaId: 'urutau.schema_id',
  /** JSON list of column names in key order; absent when there is no key. */
  primaryKey: 'urutau.primary_key',
  /** `none`, `key` or `full`: what the before-image holds. */
  before: 'urutau.before',
  /** The canonical kind. */
  kind: 'urutau.kind',
  /** The vendor's own text of the type. */
  sourceType: 'urutau.source_type',
  /** `true` where the source forbids NULL. */
  notNull: 'urutau.not_null',
  /** The source's collation of a text column. */
  collation: 'urutau.collation',
  /** `true` on the one column that names each row's version (SCH-10). */
  rowVersion: 'urutau.row_version',
} as const;

/** Sizes, counts and times of the contract; the unit is in each name. */
export const LIMIT = {
  /** One gRPC message, both ways. */
  messageBytesMax: 33_554_432,
  /** The readiness line with its newline. */
  readinessLineBytesMax: 8_192,
  /** From spawn to the readiness line. */
  readinessMs: 30_000,
  /** What the host keeps of stderr to explain a failed start. */
  stderrTailBytes: 65_536,
  /** Between two heartbeats of the host. */
  heartbeatEveryMs: 2_000,
  /** In which a heartbeat is answered under full load. */
  heartbeatAnswerMs: 1_000,
  /** Without a heartbeat, after which a driver exits 1. */
  watchdogMs: 15_000,
  /** From urutau.shutdown or SIGTERM to exit. */
  stopMs: 15_000,
  /** A table's name. */
  tableNameBytesMax: 256,
  /** An offset of the base, decoded. */
  offsetBytesMax: 256,
  /** A resume point in the envelope, decoded. */
  envelopeOffsetBytesMax: 8_192,
  /** The envelope of one batch. */
  envelopeBytesMax: 65_536,
  /** A ticket. */
  ticketBytesMax: 8_192,
  /** All tokens of one snapshot plan. */
  planBytesMax: 16_384,
  /** One checkpoint. */
  checkpointBytesMax: 65_536,
  /** Request or answer of an action. */
  actionBytesMax: 16_777_216,
  /** Streams that the host opens at once to a base driver. */
  baseStreamsMax: 8,
  /** The least that a sink with commit/1 takes without a commit. */
  maxUncommittedBytesMin: 67_108_864,
  /** In which a commit waits for its stream to be opened. */
  streamOpenMs: 10_000,
  /** For which the queue of a stream that ended is kept. */
  queueKeptMs: 60_000,
  /** For which one full queue may hold up the others. */
  slowConsumerMs: 30_000,
} as const;

export type GrpcStatusName =
  | 'INVALID_ARGUMENT'
  | 'FAILED_PRECONDITION'
  | 'NOT_FOUND'
  | 'ABORTED'
  | 'UNAVAILABLE'
  | 'UNAUTHENTICATED'
  | 'INTERNAL';

/** What a caller may do after an error. */
export type Retry = 'never' | 'reopen' | 'reassign' | 'backoff' | 'restart';

/** The closed list of error codes: the gRPC status each travels with, what may be tried, and the remedy. */
export const ERRORS = {
  'config-invalid': { grpc: 'INVALID_ARGUMENT', retry: 'never', remedy: 'Correct the configuration that the message names.' },
  'precondition-failed': { grpc: 'FAILED_PRECONDITION', retry: 'never', remedy: 'Do what each listed precondition asks for, then start again.' },
  'table-not-found': { grpc: 'NOT_FOUND', retry: 'never', remedy: 'Check the table\'s full name and the grants of the user that connects.' },
  'position-lost': { grpc: 'FAILED_PRECONDITION', retry: 'never', remedy: 'The source no longer keeps this position: run `urutau-host table resync`.' },
  'schema-lost': { grpc: 'FAILED_PRECONDITION', retry: 'never', remedy: 'The log cannot be decoded with the schema of its time: run `urutau-host table resync`.' },
  'plan-lost': { grpc: 'FAILED_PRECONDITION', retry: 'reopen', remedy: 'The table\'s storage was rewritten; its snapshot is planned again.' },
  'reassigned': { grpc: 'ABORTED', retry: 'reassign', remedy: 'A new assignment replaced this stream; open it again.' },
  'reassign-needed': { grpc: 'FAILED_PRECONDITION', retry: 'reassign', remedy: 'The log reader has passed this offset; assign the tables again.' },
  'schema-changed': { grpc: 'ABORTED', retry: 'reopen', remedy: 'The table\'s shape changed; commit what came before and open the stream again.' },
  'slow-consumer': { grpc: 'ABORTED', retry: 'reassign', remedy: 'The table was not read for 30 s while others waited for it; it is assigned again.' },
  'fenced': { grpc: 'ABORTED', retry: 'never', remedy: 'Another checkpoint is stored for this table; read it before writing again.' },
  'stale-stream': { grpc: 'ABORTED', retry: 'never', remedy: 'A newer write stream of this table exists; this one may write no more.' },
  'stream-lost': { grpc: 'ABORTED', retry: 'reopen', remedy: 'The write stream ended before the cut arrived; open a new one from the stored checkpoint.' },
  'superseded': { grpc: 'ABORTED', retry: 'never', remedy: 'Another host runs this pipeline; stop one of the two.' },
  'row-refused': { grpc: 'INVALID_ARGUMENT', retry: 'never', remedy: 'Correct the row at the source or the target\'s definition, then run `urutau-host table resume`.' },
  'row-too-large': { grpc: 'INVALID_ARGUMENT', retry: 'never', remedy: 'The row is over the message limit; shorten it at the source, then run `urutau-host table resume`.' },
  'type-unsupported': { grpc: 'INVALID_ARGUMENT', retry: 'never', remedy: 'Leave the column out of the table or change its type.' },
  'schema-unsupported': { grpc: 'INVALID_ARGUMENT', retry: 'never', remedy: 'Make the target\'s columns fit the source\'s, or run `urutau-host table resync` into a new target.' },
  'source-unavailable': { grpc: 'UNAVAILABLE', retry: 'backoff', remedy: 'Check that the source is reachable from this machine; the host tries again by itself.' },
  'sink-unavailable': { grpc: 'UNAVAILABLE', retry: 'backoff', remedy: 'Check that the destination is reachable from this machine; the host tries again by itself.' },
  'auth-failed': { grpc: 'UNAUTHENTICATED', retry: 'never', remedy: 'Check the user, its password and its grants.' },
  'protocol-violation': { grpc: 'INTERNAL', retry: 'never', remedy: 'One side breaks the contract: run `urutau-conformance` on this driver.' },
  'internal': { grpc: 'INTERNAL', retry: 'restart', remedy: 'Read the driver\'s last lines of log; this is a fault of the driver.' },
} as const satisfies Record<string, { grpc: GrpcStatusName; retry: Retry; remedy: string }>;
export type ErrorCode = keyof typeof ERRORS;

/** Places in a process's work at which a test may let it fail, and what each is: a step, an answer or a stream. */
export const FAULT_POINTS = {
  'source.listening': { kind: 'step', action: null },
  'source.slot.made': { kind: 'step', action: null },
  'source.assign.answer': { kind: 'reply', action: 'urutau.assign' },
  'source.plan.answer': { kind: 'reply', action: 'urutau.plan' },
  'source.flight-info.answer': { kind: 'reply', action: null },
  'source.log.received': { kind: 'step', action: null },
  'source.log.decoded': { kind: 'step', action: null },
  'source.batch.closed': { kind: 'step', action: null },
  'source.changes.sent': { kind: 'stream', action: null },
  'source.chunk.opened': { kind: 'step', action: null },
  'source.chunk.sent': { kind: 'stream', action: null },
  'source.picture.opened': { kind: 'step', action: null },
  'source.picture.sent': { kind: 'stream', action: null },
  'source.head.answer': { kind: 'reply', action: 'urutau.head' },
  'source.progress.answer': { kind: 'reply', action: 'urutau.progress' },
  'source.confirm.asked': { kind: 'step', action: null },
  'source.confirm.answer': { kind: 'reply', action: 'urutau.confirm' },
  'source.heartbeat.answer': { kind: 'reply', action: 'urutau.heartbeat' },
  'source.shutdown.asked': { kind: 'step', action: null },
  'sink.listening': { kind: 'step', action: null },
  'sink.checkpoint.answer': { kind: 'reply', action: 'urutau.checkpoint' },
  'sink.ensure.answer': { kind: 'reply', action: 'urutau.ensure' },
  'sink.batch.received': { kind: 'stream', action: null },
  'sink.batch.staged': { kind: 'step', action: null },
  'sink.commit.asked': { kind: 'step', action: null },
  'sink.commit.fenced': { kind: 'step', action: null },
  'sink.commit.merged': { kind: 'step', action: null },
  'sink.commit.answer': { kind: 'reply', action: 'urutau.commit' },
  'sink.flush.answer': { kind: 'reply', action: 'urutau.flush' },
  'sink.heartbeat.answer': { kind: 'reply', action: 'urutau.heartbeat' },
  'sink.shutdown.asked': { kind: 'step', action: null },
  'host.driver.spawned': { kind: 'step', action: null },
  'host.driver.ready': { kind: 'step', action: null },
  'host.checkpoints.read': { kind: 'step', action: null },
  'host.tables.assigned': { kind: 'step', action: null },
  'host.target.ensured': { kind: 'step', action: null },
  'host.stream.raised': { kind: 'step', action: null },
  'host.batch.received': { kind: 'step', action: null },
  'host.batch.sent': { kind: 'step', action: null },
  'host.chunk.gated': { kind: 'step', action: null },
  'host.chunk.relayed': { kind: 'step', action: null },
  'host.head.taken': { kind: 'step', action: null },
  'host.snapshot.done': { kind: 'step', action: null },
  'host.picture.relayed': { kind: 'step', action: null },
  'host.commit.asked': { kind: 'step', action: null },
  'host.commit.answered': { kind: 'step', action: null },
  'host.flush.answered': { kind: 'step', action: null },
  'host.keys.quarantined': { kind: 'step', action: null },
  'host.letters.stored': { kind: 'step', action: null },
  'host.letters.applied': { kind: 'step', action: null },
  'host.confirm.asked': { kind: 'step', action: null },
  'host.confirm.answered': { kind: 'step', action: null },
  'host.drained': { kind: 'step', action: null },
  'host.drivers.ended': { kind: 'step', action: null },
} as const satisfies Record<string, { kind: 'step' | 'reply' | 'stream'; action: ActionName | null }>;
export type FaultPoint = keyof typeof FAULT_POINTS;

export const PROTOCOL_VERSION = 1;

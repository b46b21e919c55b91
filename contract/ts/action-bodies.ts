import type { Phase } from './envelope.ts';
import type { ErrorCode } from './registry.ts';

/** An offset or a token as it travels in JSON: base64 of opaque bytes. */
export type Base64 = string;

export interface TableListing {
  name: string;
  supportsSnapshot: boolean;
  primaryKey?: string[];
  estimatedRows?: number;
}
export interface ListTablesAnswer {
  tables: TableListing[];
}

export interface StatusAnswer {
  state: 'idle' | 'snapshotting' | 'streaming' | 'draining' | 'error';
  tables: Record<string, { offset?: Base64; lagEvents?: number }>;
  uptimeSec: number;
}

export interface Capabilities {
  /** Streams a connection may carry; more tables use more connections. */
  maxStreams?: number;
  snapshotOnly?: boolean;
  /** `bytes`: unsigned byte order of offsets is log order (CMP-2). */
  offsetOrder?: 'bytes';
  commit?: 'atomic' | 'ordered';
  maxUncommitted?: { rows?: number; bytes: number };
  mergeUnchanged?: boolean;
  truncate?: boolean;
  ipcCompression?: string[];
  slices?: boolean;
}

export interface DescribeAnswer {
  name: string;
  version: string;
  role: 'source' | 'sink';
  extensions: string[];
  capabilities: Capabilities;
  arrowTypes?: string[];
}

/** The JSON of a GetFlightInfo descriptor. `fromOffset` goes with changes; range, rows and notBefore with chunk, rowVersions with snapshot. */
export interface ReadDescriptor {
  table: string;
  mode: 'snapshot' | 'changes' | 'chunk';
  fromOffset?: Base64;
  allowUnchanged?: boolean;
  rowVersions?: boolean;
  range?: string;
  rows?: number;
  notBefore?: Base64;
}

/** FlightInfo.app_metadata: `endOffset` of a snapshot, `stream` and `estimatedLag` of changes. */
export interface ReadMetadata {
  endOffset?: Base64;
  estimatedLag?: number;
  stream?: string;
}

export interface AssignRequest {
  tables: { table: string; fromOffset?: Base64; schemaId?: string; hold?: boolean }[];
  check?: boolean;
}
export interface AssignAnswer {
  source: string;
  tables: Record<string, { start: Base64; schemaId?: string; estimatedRows?: number }>;
}

export interface ConfirmRequest {
  tables: Record<string, Base64>;
}

export interface HeadAnswer {
  offset: Base64;
}

export interface ProgressRequest {
  tables: string[];
}
export interface ProgressAnswer {
  /** `heldBytes`: log that the source keeps for this table alone, behind what is confirmed of it. */
  tables: Record<string, { stream: string; decoded: Base64; seq: number; heldBytes?: number }>;
}

export interface PlanRequest {
  table: string;
  ranges: number;
}
export interface PlanAnswer {
  ranges: string[];
  estimatedRows?: number;
}

export interface CompareRequest {
  pairs: [Base64, Base64][];
}
export interface CompareAnswer {
  orders: (-1 | 0 | 1 | null)[];
}

export type WriteMode = 'upsert' | 'append' | 'append-idempotent';

export interface Slice {
  i: number;
  n: number;
}

export interface EnsureRequest {
  table: string;
  writer: string;
  slice?: Slice;
  /** The row schema as an encapsulated IPC message, base64. */
  schema: Base64;
  primaryKey: string[];
  writeMode: WriteMode;
  identity?: string[];
  partitionBy?: string[];
  createIfNotExists: boolean;
  evolve: boolean;
  check: boolean;
  options: Record<string, unknown>;
}
export interface EnsureAnswer {
  created: boolean;
  /** True when the target holds no row. */
  empty: boolean;
  changes: string[];
  schema?: Base64;
}

export interface CheckpointRequest {
  writer: string;
  tables: string[];
  slice?: Slice;
}
export type CheckpointAnswer = Record<
  string,
  { checkpoint: string | null } | { error: { code: ErrorCode; message: string; remedy?: string } }
>;

/** The JSON of a DoPut descriptor. */
export interface WriteDescriptor {
  mode: 'write';
  table: string;
  stream?: number;
  slice?: Slice;
}

export interface CommitRequest {
  writer: string;
  table: string;
  slice?: Slice;
  stream: number;
  through: number;
  checkpoint: string;
  previous: string | null;
}

export interface TeardownRequest {
  writer: string;
  tables: string[] | 'all';
  check: boolean;
}
export interface TeardownAnswer {
  /** What is there (with `check`) or was removed, one sentence each. */
  items: string[];
}

export type { Phase };

import type { AssignAnswer, AssignRequest, Capabilities, ProgressAnswer, TableShape } from '@urutau/contract';
import type { Batch } from '../batch.ts';

/** A stream of change records being read; pulled one batch at a time. */
export interface Feed {
  readonly shape: TableShape;
  /** Null at the end, which only finite feeds have. */
  next(): Promise<Batch | null>;
  close(): void;
}

export interface ChangesFeed extends Feed {
  /** Names the stream in `urutau.progress`. */
  readonly stream: string | null;
}

export interface SnapshotFeed extends Feed {
  /** Where the changes go on that the picture does not hold. */
  readonly endOffset: string;
}

export interface Plan {
  ranges: string[];
  estimatedRows: number | null;
}

export type Order = -1 | 0 | 1 | null;

/** A source as the pipeline uses it, with or without extensions. All offsets are base64. */
export interface SourcePort {
  /** The same source, whose calls and streams end with `signal`: they throw its reason. Confirmations are not cut short. */
  within(signal: AbortSignal): SourcePort;
  readonly name: string;
  /** Streams that may be open at once (HOST-7); null for a driver that describes itself. */
  readonly streamsMax: number | null;
  readonly capabilities: Capabilities;
  /** Null for a driver without `assign/1`: its streams are opened one by one. */
  readonly assign: ((request: AssignRequest) => Promise<AssignAnswer>) | null;
  /** Chunks with resumable ranges (`chunks/1`), or null: then only whole pictures can be read. */
  readonly chunks: {
    plan(table: string, ranges: number): Promise<Plan>;
    read(table: string, range: string, options: { rows: number; notBefore: string }): Promise<Feed>;
  } | null;
  changes(table: string, fromOffset: string | null): Promise<ChangesFeed>;
  /** One consistent picture, its rows as change records of the shape that the changes have. */
  snapshot(table: string): Promise<SnapshotFeed>;
  /** Null without `confirm/1`. */
  readonly confirm: ((tables: Record<string, string>) => Promise<void>) | null;
  /** Null without `progress/1`. */
  readonly progress: {
    head(): Promise<string>;
    of(tables: string[]): Promise<ProgressAnswer['tables']>;
  } | null;
  /** Incomparable (null) always means "not covered". */
  compare(a: string, b: string): Promise<Order>;
  /** Changes per table that a driver without `progress/1` says are still to come; undefined where it does not say. */
  lag(): Promise<Record<string, number | undefined>>;
}

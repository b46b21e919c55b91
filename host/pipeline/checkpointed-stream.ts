import { UrutauError } from '@urutau/contract';
import {
  type Checkpoint,
  decodeCheckpoint,
  encodeCheckpoint,
  type SnapshotProgress,
} from '../checkpoint/checkpoint.ts';
import type { Batch } from './batch.ts';
import type { StoredKeys } from './quarantine/quarantined-keys.ts';
import type { TableSink } from './sink/port.ts';
import { superseded } from './superseded.ts';

/** What a commit stores when it is made now: it covers exactly what has been sent. */
export interface Position {
  offset: string | null;
  snapshot: SnapshotProgress;
}

/** What the relay writes a table's batches into. Calls are carried out in the order in which they are made. */
export interface TableStream {
  /** Called once when it breaks outside of a call. */
  onFailure: (error: UrutauError) => void;
  write(batch: Batch): Promise<void>;
  /** Makes everything written so far durable, and answers with the checkpoint that is stored with it. */
  commit(position: Position): Promise<Checkpoint>;
  close(): void;
}

export interface CheckpointedStreamOptions {
  /** The target. */
  table: string;
  sink: TableSink;
  /** Everything of the checkpoint but position, keys and commit number, with the stream's number. */
  identity: StreamIdentity;
  /** What is stored now. */
  stored: string | null;
}

export type StreamIdentity = Omit<Checkpoint, 'commit' | keyof Position | keyof StoredKeys>;

/** One write stream of one table with the checkpoints of its commits, each of which stands on the one before. */
export class CheckpointedStream implements TableStream {
  onFailure: (error: UrutauError) => void = () => {};
  readonly #options: CheckpointedStreamOptions;
  #stored: string | null;
  #commitNumber = -1;

  constructor(options: CheckpointedStreamOptions) {
    this.#options = options;
    this.#stored = options.stored;
    options.sink.onFailure = (error) => this.onFailure(error);
  }

  /** The checkpoint text that was stored last. */
  get stored(): string | null {
    return this.#stored;
  }

  get number(): number {
    return this.#options.identity.stream;
  }

  /** `seq` of the batch that was written last. */
  get seq(): number {
    return this.#options.sink.seq;
  }

  write(batch: Batch): Promise<void> {
    return this.#options.sink.write(batch);
  }

  async commit({ offset, snapshot }: Position, keys: StoredKeys = {}): Promise<Checkpoint> {
    const commit = ++this.#commitNumber;
    const checkpoint: Checkpoint = { ...this.#options.identity, offset, snapshot, ...keys, commit };
    const text = encodeCheckpoint(checkpoint);
    await this.#fenced(text);
    this.#stored = text;
    return checkpoint;
  }

  close(): void {
    this.#options.sink.close();
  }

  /** CMT-10: another checkpoint is stored. Ours, then the answer was lost; another host's, then it has taken over. */
  async #fenced(text: string): Promise<void> {
    const { sink, table, identity } = this.#options;
    try {
      await sink.commit(text, this.#stored);
    } catch (error) {
      if (!(error instanceof UrutauError) || error.code !== 'fenced') throw error;
      const { stored = null } = error.context;
      if (stored === text) return;
      const other = stored === null ? null : decodeCheckpoint(stored, table);
      if (other && other.run !== identity.run && other.stream >= identity.stream) {
        throw superseded(table, other.writer, error);
      }
      throw new UrutauError('stream-lost', `the checkpoint of ${table} has moved since it was read`, {
        table,
        cause: error,
      });
    }
  }
}

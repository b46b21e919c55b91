/** Keeps checkpoints for sinks that cannot hold them with the data. Keyed by pipeline and table. */
export interface CheckpointStore {
  read(writer: string, table: string): string | null;
  /** Durable when it returns, for a store that outlives the process. */
  write(writer: string, table: string, checkpoint: string): void;
  remove(writer: string, tables: readonly string[] | 'all'): string[];
  close(): void;
}

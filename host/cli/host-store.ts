import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStore } from '../checkpoint/memory-store.ts';
import { sqliteStore } from '../checkpoint/sqlite-store.ts';
import type { CheckpointStore } from '../checkpoint/store.ts';
import type { StoreSpec } from '../spec/pipeline.ts';

/** The host's own store of positions, for sinks that cannot hold them. */
export interface HostStore {
  /** Opened, and its file made, when it is first wanted. */
  open(): CheckpointStore;
  /** Null when no run has made it, or it ended with its run. */
  existing(): CheckpointStore | null;
  close(): void;
}

export function hostStore(spec: StoreSpec, stateDir: string): HostStore {
  let opened: CheckpointStore | null = null;
  const path = spec.kind === 'sqlite' ? (spec.path ?? join(stateDir, 'checkpoints.db')) : null;
  const open = () => {
    opened ??= path === null ? memoryStore() : sqliteStore(path);
    return opened;
  };
  return {
    open,
    existing: () => (path !== null && existsSync(path) ? open() : null),
    close: () => opened?.close(),
  };
}

import { UrutauError } from '@urutau/contract';
import type { Checkpoint } from './checkpoint.ts';

/** What this pipeline would write into a checkpoint of the table now. */
export interface Expected {
  writer: string;
  source: string;
  shape: string;
}

/**
 * Refuses a checkpoint of another pipeline, another source or another meaning of the table: going on from it would
 * mix two histories in one target.
 */
export function acceptCheckpoint(table: string, stored: Checkpoint, expected: Expected): void {
  if (stored.writer !== expected.writer) {
    throw refused(
      table,
      `it belongs to the pipeline ${stored.writer}, this one is ${expected.writer}`,
      'Name another target.',
    );
  }
  if (stored.source !== expected.source) {
    throw refused(
      table,
      `it was taken from the source ${stored.source || '(unnamed)'}, this pipeline now reads ${expected.source || '(unnamed)'}`,
      'If the source was replaced on purpose run `urutau-host table resync`; otherwise correct the source.',
    );
  }
  if (stored.shape !== expected.shape) {
    throw refused(
      table,
      `it was taken with ${stored.shape}, the pipeline file now says ${expected.shape}`,
      'Undo the change, or run `urutau-host table resync`.',
    );
  }
}

function refused(table: string, why: string, remedy: string): UrutauError {
  return new UrutauError('precondition-failed', `the checkpoint of ${table} does not fit: ${why}`, { table, remedy });
}

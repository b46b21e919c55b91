import { LIMIT, UrutauError } from '@urutau/contract';

/**
 * What a table's position is, as one JSON text that the sink stores with the data and never reads. It never repeats:
 * run, stream and commit number make each one new.
 */
export interface Checkpoint {
  v: 1;
  /** The pipeline's name. */
  writer: string;
  /** Random, one per run of a host. */
  run: string;
  /** Identity of the source's data, from `urutau.assign`; empty for a base source. */
  source: string;
  /** Number of the write stream. */
  stream: number;
  /** Number of the commit within the stream; 0 is the one that opened it. */
  commit: number;
  /** Resume point, base64; null before a base source's first snapshot. */
  offset: string | null;
  schemaId: string | null;
  /** Fingerprint of what the table's rows mean: key and mode. */
  shape: string;
  snapshot: SnapshotProgress;
  /** Hashes of the keys whose changes go to the dead letters (`onPoison: quarantine`); absent without any. */
  quarantined?: string[];
  /** For each of them, in base 36, the ordinal from which on its dead letters count. */
  quarantinedSince?: string[];
  /** The run in which the first of them was quarantined: their dead letters name it. */
  quarantinedIn?: string;
}

/**
 * `done`; or ranges still to read (chunks), with the head of the source's log after the last one; or `picture`: a
 * consistent snapshot that begins anew when it was cut short.
 */
export type SnapshotProgress =
  | 'done'
  | { ranges: string[]; head?: string; truncate?: boolean }
  | { picture: true; truncate?: boolean };

/** Throws when the text would be longer than a sink need keep (CMT-1). */
export function encodeCheckpoint(checkpoint: Checkpoint): string {
  const text = JSON.stringify(checkpoint);
  const bytes = Buffer.byteLength(text);
  if (bytes <= LIMIT.checkpointBytesMax) return text;
  throw new UrutauError(
    'precondition-failed',
    `the checkpoint has ${bytes} bytes, over the limit of ${LIMIT.checkpointBytesMax}`,
    { remedy: 'Run `urutau-host table replay`, so that fewer keys are quarantined, or `table resync`.' },
  );
}

/** Throws when the text is no checkpoint of this version: then something else wrote it, and nothing may be assumed. */
export function decodeCheckpoint(text: string, table: string): Checkpoint {
  let checkpoint: Partial<Checkpoint>;
  try {
    checkpoint = JSON.parse(text);
  } catch (cause) {
    throw unreadable(table, 'it is not JSON', cause);
  }
  if (checkpoint.v !== 1) throw unreadable(table, `its version is ${JSON.stringify(checkpoint.v)}, this host reads 1`);
  return checkpoint as Checkpoint;
}

function unreadable(table: string, why: string, cause?: unknown): UrutauError {
  return new UrutauError('precondition-failed', `the checkpoint stored for ${table} cannot be used: ${why}`, {
    table,
    cause,
    remedy: 'Use the version of urutau-host that wrote it, or run `urutau-host table resync`.',
  });
}

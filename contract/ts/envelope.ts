import { LIMIT } from './registry.ts';
import { UrutauError } from './urutau-error.ts';

export type Phase = 'snapshot' | 'stream' | 'incremental';

/** What c/u/d cannot say; rides on an empty batch, in order with the rows (ENVL-7). */
export type TableEvent =
  | { kind: 'truncate' }
  | { kind: 'schema_change'; ddl?: string }
  | { kind: 'destructive_ddl'; ddl?: string };

/** Counts and resume point of one batch, beside its rows (`envelope/1`). All offsets are base64. */
export interface Envelope {
  /** 1, 2, … within one stream. */
  seq: number;
  rows: number;
  /** Resume point after the last row. */
  offset?: string;
  /** Every change of this table at or below it is in this or an earlier batch. */
  decoded?: string;
  /** RFC 3339, of the last commit in the batch. */
  commitTs?: string;
  phase?: Phase;
  ops?: { c?: number; u?: number; d?: number };
  /** On a chunk's batch: what is left of the range after its last row; null at its end. */
  next?: string | null;
  event?: TableEvent;
  /** Column name → base64 bitmap of rows whose value the source did not send. */
  unchanged?: Record<string, string>;
  /** A commit may end here. */
  cut?: boolean;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeEnvelope(envelope: Envelope): Uint8Array {
  const bytes = encoder.encode(JSON.stringify(envelope));
  if (bytes.length > LIMIT.envelopeBytesMax) {
    throw new UrutauError(
      'protocol-violation',
      `the envelope of a batch has ${bytes.length} bytes, over the limit of ${LIMIT.envelopeBytesMax}`,
    );
  }
  return bytes;
}

/** Null when there is none: the stream is of a base driver. */
export function decodeEnvelope(appMetadata: Uint8Array): Envelope | null {
  const text = decoder.decode(appMetadata).trim();
  if (text === '') return null;
  let envelope: Envelope;
  try {
    envelope = JSON.parse(text);
  } catch (cause) {
    throw new UrutauError('protocol-violation', 'app_metadata of a batch is not JSON', { cause });
  }
  if (!Number.isSafeInteger(envelope.seq) || !Number.isSafeInteger(envelope.rows)) {
    throw new UrutauError('protocol-violation', 'the envelope of a batch lacks the numbers seq and rows');
  }
  return envelope;
}

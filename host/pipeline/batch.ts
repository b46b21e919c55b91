import type { Envelope } from '@urutau/contract';

/** One batch on its way from source to sink. The host reads the envelope; header and body pass as bytes. */
export interface Batch {
  envelope: Envelope;
  header: Uint8Array;
  /** The Arrow body, in pieces where the host had to put one together. */
  body: readonly Uint8Array[];
  /** Bytes of header and body. */
  bytes: number;
}

export function batchOf(envelope: Envelope, header: Uint8Array, body: readonly Uint8Array[]): Batch {
  return { envelope, header, body, bytes: body.reduce((sum, piece) => sum + piece.length, header.length) };
}

/** Bytes as a string of their own numbers, for the short texts that need one. */
export function latin1(bytes: Uint8Array, start: number, length: number): string {
  // Frames are Buffers: laying one over the bytes costs more than reading them.
  if (Buffer.isBuffer(bytes)) return bytes.toString('latin1', start, start + length);
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString('latin1');
}

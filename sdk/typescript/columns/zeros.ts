let shared = new Uint8Array(64 * 1024);

/** A view of shared zero bytes, for columns that hold nothing. Never write to it. */
export function zeros(bytes: number): Uint8Array {
  if (shared.length < bytes) shared = new Uint8Array(2 * bytes);
  return shared.subarray(0, bytes);
}

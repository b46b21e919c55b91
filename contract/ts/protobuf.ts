/**
 * The part of the protobuf wire format that Flight's messages need. Messages are written by hand from their field
 * numbers (flight.proto), because generated code copies the Arrow body of each batch and this does not.
 */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

const text = new TextEncoder();
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Builds one message; fields with an empty value are left out, as proto3 does. */
export class MessageWriter {
  readonly #parts: Uint8Array[] = [];

  uint(field: number, value: number | bigint): this {
    if (value === 0 || value === 0n) return this;
    this.#parts.push(varint((field << 3) | VARINT), varint(value));
    return this;
  }

  bytes(field: number, value: Uint8Array | undefined): this {
    if (value === undefined || value.length === 0) return this;
    this.#parts.push(varint((field << 3) | BYTES), varint(value.length), value);
    return this;
  }

  string(field: number, value: string | undefined): this {
    return this.bytes(field, value === undefined ? undefined : text.encode(value));
  }

  /** Unlike `bytes`, an empty message is written: its presence means something. */
  message(field: number, value: Uint8Array): this {
    this.#parts.push(varint((field << 3) | BYTES), varint(value.length), value);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** One field as it lies on the wire. `bytes` is a view, never a copy. */
export type Field = { number: number; varint: bigint; bytes: Uint8Array };

const NOTHING = new Uint8Array(0);

/** Walks the top-level fields of a message. Throws on bytes that are no protobuf message. */
export function* fieldsOf(message: Uint8Array): Generator<Field> {
  let at = 0;
  while (at < message.length) {
    const tag = readVarint(message, at);
    at = tag.next;
    const number = Number(tag.value >> 3n);
    switch (Number(tag.value & 7n)) {
      case VARINT: {
        const { value, next } = readVarint(message, at);
        at = next;
        yield { number, varint: value, bytes: NOTHING };
        break;
      }
      case BYTES: {
        const { value, next } = readVarint(message, at);
        const end = next + Number(value);
        if (end > message.length) throw new Error(`protobuf field ${number} is cut short`);
        at = end;
        yield { number, varint: 0n, bytes: message.subarray(next, end) };
        break;
      }
      case FIXED64:
        at += 8;
        break;
      case FIXED32:
        at += 4;
        break;
      default:
        throw new Error(`protobuf field ${number} has a wire type that is not in use`);
    }
  }
  if (at > message.length) throw new Error('protobuf message is cut short');
}

export function asText(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

export function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 0x80);
  } while (rest !== 0n);
  return Uint8Array.from(bytes);
}

function readVarint(bytes: Uint8Array, from: number): { value: bigint; next: number } {
  let value = 0n;
  for (let at = from, shift = 0n; at < bytes.length && shift < 70n; at++, shift += 7n) {
    const byte = bytes[at]!;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), next: at + 1 };
  }
  throw new Error('protobuf varint is cut short');
}

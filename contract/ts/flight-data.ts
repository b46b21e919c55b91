import { descriptorMessage, type FlightDescriptor } from './flight-messages.ts';
import { varint } from './protobuf.ts';

/** One message of a DoGet or DoPut stream. The views lie over the received buffer: nothing is copied. */
export interface FlightData {
  /** The IPC message without its length prefix; empty on a message that carries metadata alone. */
  dataHeader: Uint8Array;
  /** The envelope's JSON (ENVL-1), or empty. Trailing spaces are padding. */
  appMetadata: Uint8Array;
  /** The Arrow body. Its alignment is whatever the transport gave: see `alignedBody`. */
  dataBody: Uint8Array;
  descriptor?: FlightDescriptor;
}

/** What is to be sent. The body may lie in pieces; they are joined by the one copy into the transport's frame. */
export interface OutgoingFlightData {
  dataHeader: Uint8Array;
  appMetadata?: Uint8Array;
  body: readonly Uint8Array[];
  descriptor?: FlightDescriptor;
}

const DESCRIPTOR = 1;
const DATA_HEADER = 2;
const APP_METADATA = 3;
const DATA_BODY = 1000;
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;
const SPACE = 0x20;
const NOTHING = new Uint8Array(0);

export function decodeFlightData(message: Uint8Array): FlightData {
  const { body, ...rest } = decodeFlightDataPieces([message]);
  return { ...rest, dataBody: body[0] ?? NOTHING };
}

/** The same of a message that lies in pieces: the body stays in its pieces, whatever is small is joined where it must be. */
export interface FlightDataInPieces extends Omit<FlightData, 'dataBody'> {
  body: Uint8Array[];
}

export function decodeFlightDataPieces(pieces: readonly Uint8Array[]): FlightDataInPieces {
  const data: FlightDataInPieces = { dataHeader: NOTHING, appMetadata: NOTHING, body: [] };
  const cursor = new PiecesCursor(pieces);
  while (!cursor.atEnd) {
    const tag = cursor.varint();
    if ((tag & 7) !== LENGTH_DELIMITED) {
      cursor.skip(tag);
      continue;
    }
    const length = cursor.varint();
    switch (tag >> 3) {
      case DESCRIPTOR:
        data.descriptor = descriptorMessage.decode(cursor.bytes(length));
        break;
      case DATA_HEADER:
        data.dataHeader = cursor.bytes(length);
        break;
      case APP_METADATA:
        data.appMetadata = cursor.bytes(length);
        break;
      case DATA_BODY:
        data.body = cursor.pieces(length);
        break;
      default:
        cursor.pieces(length);
    }
  }
  return data;
}

class PiecesCursor {
  readonly #pieces: readonly Uint8Array[];
  #piece = 0;
  #at = 0;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces;
    this.#advance(0); // The first piece may be empty.
  }

  get atEnd(): boolean {
    return this.#piece >= this.#pieces.length;
  }

  /** Tags and lengths: below 2^32, since a message is. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 35; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Error('a length inside FlightData is out of range');
  }

  /** Passes over the value of a field that is not in use, as protobuf asks for. */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        while (this.#byte() >= 0x80);
        return;
      case FIXED64:
        this.pieces(8);
        return;
      case FIXED32:
        this.pieces(4);
        return;
      default:
        throw new Error(`field ${tag >> 3} of FlightData has a wire type that is not in use`);
    }
  }

  bytes(length: number): Uint8Array {
    const pieces = this.pieces(length);
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }

  /** Views of the next `length` bytes. */
  pieces(length: number): Uint8Array[] {
    const taken: Uint8Array[] = [];
    for (let missing = length; missing > 0; ) {
      const piece = this.#pieces[this.#piece];
      if (piece === undefined) throw new Error('FlightData is cut short');
      const view = piece.subarray(this.#at, this.#at + missing);
      taken.push(view);
      missing -= view.length;
      this.#advance(view.length);
    }
    return taken;
  }

  #byte(): number {
    const byte = this.#pieces[this.#piece]?.[this.#at];
    if (byte === undefined) throw new Error('FlightData is cut short');
    this.#advance(1);
    return byte;
  }

  #advance(bytes: number): void {
    this.#at += bytes;
    while (this.#piece < this.#pieces.length && this.#at >= this.#pieces[this.#piece]!.length) {
      this.#at -= this.#pieces[this.#piece]!.length;
      this.#piece++;
    }
  }
}

/**
 * A serialized message that was never joined. The host writes its pieces as they are. grpc-js, in the SDK, asks for the
 * length and then copies the message behind the five bytes of its frame, which `copy` does in one go.
 */
export class PiecewiseMessage {
  readonly pieces: readonly Uint8Array[];
  readonly length: number;

  constructor(pieces: readonly Uint8Array[]) {
    this.pieces = pieces;
    this.length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  get byteLength(): number {
    return this.length;
  }

  copy(target: Uint8Array, targetStart = 0): number {
    let at = targetStart;
    for (const piece of this.pieces) {
      target.set(piece, at);
      at += piece.length;
    }
    return this.length;
  }

  toBuffer(): Buffer {
    const whole = Buffer.allocUnsafe(this.length);
    this.copy(whole);
    return whole;
  }
}

/** NET-7: the metadata is padded with spaces so that the body starts at a multiple of eight within the message. */
export function encodeFlightData({ dataHeader, appMetadata, body, descriptor }: OutgoingFlightData): PiecewiseMessage {
  const bodyLength = body.reduce((sum, piece) => sum + piece.length, 0);
  const start: Uint8Array[] = [];
  if (descriptor) pushField(start, DESCRIPTOR, descriptorMessage.encode(descriptor));
  pushField(start, DATA_HEADER, dataHeader);
  const bodyTag = bodyLength === 0 ? [] : [varint((DATA_BODY << 3) | LENGTH_DELIMITED), varint(bodyLength)];
  const around = lengthOf(start) + lengthOf(bodyTag);
  const metadata = bodyLength === 0 ? (appMetadata ?? NOTHING) : padded(appMetadata ?? NOTHING, around);
  pushField(start, APP_METADATA, metadata);
  return new PiecewiseMessage([Buffer.concat([...start, ...bodyTag]), ...body]);
}

/** The body at an address where typed arrays may be laid over it; a copy only where the transport misplaced it. */
export function alignedBody(body: Uint8Array): Uint8Array {
  return body.byteOffset % 8 === 0 ? body : Uint8Array.from(body);
}

function pushField(parts: Uint8Array[], field: number, bytes: Uint8Array): void {
  if (bytes.length === 0) return;
  parts.push(varint((field << 3) | LENGTH_DELIMITED), varint(bytes.length), bytes);
}

function padded(metadata: Uint8Array, around: number): Uint8Array {
  for (let padding = 0; ; padding++) {
    const length = metadata.length + padding;
    const field = length === 0 ? 0 : 1 + varint(length).length + length;
    if ((around + field) % 8 !== 0) continue;
    if (padding === 0) return metadata;
    const out = new Uint8Array(length).fill(SPACE);
    out.set(metadata);
    return out;
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

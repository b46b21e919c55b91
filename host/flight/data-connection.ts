import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { status as grpcStatus } from '@grpc/grpc-js';
import { LIMIT, UrutauError } from '@urutau/contract';

/** Receive window per stream and connection; the default of 64 KiB holds a relay at a third of its speed. */
const WINDOW_BYTES = 8 * 1024 * 1024;
const KEEPALIVE_MS = 30_000;
/** Bytes of a stream that may wait here unread, beside the last message; the window bounds what lies before them. */
const BYTES_AHEAD_MAX = 2 * 1024 * 1024;
/** A message's frame: one byte that says "not compressed", and its length. */
const PREFIX_BYTES = 5;

/** How a call ended, in the shape that gRPC errors have everywhere. */
export interface CallStatus {
  code: number;
  details: string;
  metadata: { get(name: string): string[] };
}

/**
 * One HTTP/2 connection for streams of data, spoken as gRPC without grpc-js: its client joins the pieces of each message
 * into one buffer and copies it again to send it, and a relay needs neither. Actions stay with grpc-js.
 * (docs/decisions/20261130-rows-pass-the-host-without-grpc-js.md)
 */
export class DataConnection {
  readonly #session: ClientHttp2Session;
  readonly #headers: Record<string, string>;
  readonly #keepalive: NodeJS.Timeout;
  /** Open streams; the owner spreads them. */
  streams = 0;

  constructor(endpoint: string, token: string) {
    this.#headers = {
      ':method': 'POST',
      ':scheme': 'http',
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${token}`,
    };
    this.#session = connect('http://localhost', {
      createConnection: () => connectSocket(addressOf(endpoint)),
      settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
    });
    // Each stream reports the end of its connection; the session's own event says nothing more.
    this.#session.on('error', () => {});
    this.#session.once('connect', () => this.#session.setLocalWindowSize(WINDOW_BYTES));
    this.#session.unref();
    this.#keepalive = setInterval(() => {
      if (!this.#session.destroyed && !this.#session.connecting) this.#session.ping(() => {});
    }, KEEPALIVE_MS);
    this.#keepalive.unref();
  }

  get usable(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  open(path: string): DataCall {
    this.streams++;
    const stream = this.#session.request({ ...this.#headers, ':path': path }, { endStream: false });
    return new DataCall(stream, () => this.streams--);
  }

  close(): void {
    clearInterval(this.#keepalive);
    this.#session.destroy();
  }
}

/** One call with messages both ways. A message is a list of pieces, which are never joined. */
export class DataCall {
  readonly #stream: ClientHttp2Stream;
  readonly #incoming = new MessageAssembler();
  readonly #messages: Uint8Array[][] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #wake: () => void = () => {};
  #headers: IncomingHttpHeaders | null = null;
  #trailers: IncomingHttpHeaders | null = null;
  #failure: unknown = null;
  #over = false;
  /** Resolves with the status, whatever it is; with an error where the driver broke the protocol. */
  readonly status: Promise<CallStatus | UrutauError>;
  readonly #ended: (status: CallStatus | UrutauError) => void;

  constructor(stream: ClientHttp2Stream, released: () => void) {
    this.#stream = stream;
    let ended!: (status: CallStatus | UrutauError) => void;
    this.status = new Promise((resolve) => {
      ended = resolve;
    });
    this.#ended = ended;
    stream.on('response', (headers) => {
      this.#headers = headers;
      if (headers['grpc-status'] !== undefined) this.#closeAnswered();
    });
    stream.on('trailers', (headers) => {
      this.#trailers = headers;
      this.#closeAnswered();
    });
    // Trailers come before it where there are any.
    stream.on('end', () => setImmediate(() => this.#closeAnswered()));
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    stream.on('error', (error) => {
      this.#failure ??= error;
    });
    stream.on('close', () => {
      released();
      this.#over = true;
      this.#ended(this.#statusAtEnd());
      this.#wake();
    });
  }

  /** Resolves when the transport has taken the message. Rejects when the call has ended. */
  write(pieces: readonly Uint8Array[]): Promise<void> {
    const length = lengthOf(pieces);
    const prefix = Buffer.allocUnsafe(PREFIX_BYTES);
    prefix[0] = 0;
    prefix.writeUInt32BE(length, 1);
    return new Promise((resolve, reject) => {
      this.#stream.cork();
      this.#stream.write(prefix);
      for (let i = 0; i < pieces.length - 1; i++) this.#stream.write(pieces[i]!);
      this.#stream.write(pieces.at(-1) ?? Buffer.alloc(0), (error) => (error ? reject(error) : resolve()));
      this.#stream.uncork();
    });
  }

  endWrites(): void {
    this.#stream.end();
  }

  /** The next message, or null when there is none any more; then `status` says why. */
  async read(): Promise<Uint8Array[] | null> {
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) {
        this.#waitingBytes -= lengthOf(message);
        if (this.#isPaused && this.#waitingBytes < BYTES_AHEAD_MAX) {
          this.#isPaused = false;
          this.#stream.resume();
        }
        return message;
      }
      if (this.#over) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  cancel(): void {
    this.#failure ??= 'cancelled';
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  /** The driver has ended the call while we still write: what we have left is in vain, and would hold the stream open. */
  #closeAnswered(): void {
    if (!this.#stream.writableEnded) this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #take(chunk: Buffer): void {
    const before = this.#messages.length;
    try {
      this.#incoming.push(chunk, this.#messages);
    } catch (error) {
      this.#failure = error;
      this.#stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    if (this.#messages.length === before) return;
    for (const message of this.#messages.slice(before)) this.#waitingBytes += lengthOf(message);
    if (this.#waitingBytes >= BYTES_AHEAD_MAX && !this.#isPaused) {
      this.#isPaused = true;
      this.#stream.pause();
    }
    this.#wake();
  }

  #statusAtEnd(): CallStatus | UrutauError {
    const headers = this.#trailers ?? this.#headers ?? {};
    const metadata = {
      get: (name: string) => [headers[name]].flat().filter((value) => value !== undefined) as string[],
    };
    const code = headers['grpc-status'];
    if (code !== undefined) {
      return { code: Number(code), details: decodeMessage(String(headers['grpc-message'] ?? '')), metadata };
    }
    if (this.#failure instanceof UrutauError) return this.#failure;
    if (this.#failure === 'cancelled')
      return { code: grpcStatus.CANCELLED, details: 'cancelled by the host', metadata };
    const details = this.#failure instanceof Error ? this.#failure.message : 'the connection ended without a status';
    return { code: grpcStatus.UNAVAILABLE, details, metadata };
  }
}

/** Cuts a stream of chunks into messages; every piece is a view of a chunk. */
export class MessageAssembler {
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  #missing = 0;
  #pieces: Uint8Array[] = [];

  /** Appends to `messages` what the chunk completes. Throws on a message that is compressed or over the limit. */
  push(chunk: Buffer, messages: Uint8Array[][]): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        const taken = chunk.copy(this.#prefix, this.#prefixBytes, at, at + PREFIX_BYTES - this.#prefixBytes);
        this.#prefixBytes += taken;
        at += taken;
        if (this.#prefixBytes < PREFIX_BYTES) return;
        this.#missing = this.#prefix.readUInt32BE(1);
        this.#check();
      }
      const piece = chunk.subarray(at, at + this.#missing);
      if (piece.length > 0) this.#pieces.push(piece);
      this.#missing -= piece.length;
      at += piece.length;
      if (this.#missing > 0) return;
      messages.push(this.#pieces);
      this.#pieces = [];
      this.#prefixBytes = 0;
    }
    if (this.#prefixBytes === PREFIX_BYTES && this.#missing === 0) {
      messages.push(this.#pieces);
      this.#pieces = [];
      this.#prefixBytes = 0;
    }
  }

  #check(): void {
    if (this.#prefix[0] !== 0) {
      throw new UrutauError(
        'protocol-violation',
        'a driver sent a compressed message, which was not asked for (NET-1)',
      );
    }
    if (this.#missing > LIMIT.messageBytesMax) {
      throw new UrutauError(
        'protocol-violation',
        `a driver sent a message of ${this.#missing} bytes, over the limit of ${LIMIT.messageBytesMax} (NET-1)`,
        {
          remedy:
            'The driver must close its batches earlier, and refuse a row that is too long: report it to its author.',
        },
      );
    }
  }
}

function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}

function addressOf(endpoint: string): { path: string } | { host: string; port: number } {
  if (endpoint.startsWith('unix:')) return { path: endpoint.slice('unix:'.length) };
  const colon = endpoint.lastIndexOf(':');
  return { host: endpoint.slice(0, colon), port: Number(endpoint.slice(colon + 1)) };
}

/** grpc-message is percent-encoded UTF-8; what cannot be decoded is shown as it came. */
function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

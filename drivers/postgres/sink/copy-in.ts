import type { Socket } from 'node:net';
import type pg from 'pg';

/** Begins every COPY in binary format: signature, no flags, no header extension. */
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const COPY_DATA = 0x64;
const COPY_DONE = 0x63;
const COPY_FAIL = 0x66;
const MESSAGE_PREFIX_BYTES = 5;

/** Room for one CopyData message with `bytes` of tuples, its prefix already written. The tuples begin at byte 5. */
export function copyDataMessage(bytes: number): Buffer {
  const message = Buffer.allocUnsafeSlow(MESSAGE_PREFIX_BYTES + bytes);
  message[0] = COPY_DATA;
  message.writeUInt32BE(4 + bytes, 1);
  return message;
}
export const TUPLES_AT = MESSAGE_PREFIX_BYTES;

/** The parts of pg's connection that are used; the library does not type them. */
interface PgConnection {
  query(text: string): void;
  stream: Socket;
}

/**
 * One `COPY … FROM STDIN (FORMAT binary)` that stays open while batches come. The statement may have others before it in
 * the same text. Ready-made CopyData messages go to the socket as they are, and each waits for the socket's drain.
 */
export class CopyIn {
  readonly #text: string;
  readonly #started = withResolvers();
  readonly #done = withResolvers();
  #socket: Socket | null = null;
  #failure: Error | null = null;
  #wake: (() => void) | null = null;

  constructor(client: pg.Client, text: string) {
    this.#text = text;
    // Whoever writes or ends learns of a failure; a COPY that fails between two writes is nobody's unhandled rejection.
    this.#started.promise.catch(() => {});
    this.#done.promise.catch(() => {});
    client.query(this);
  }

  async write(message: Buffer): Promise<void> {
    await this.#started.promise;
    if (this.#failure) throw this.#failure;
    if (this.#socket!.write(message)) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#socket!.once('drain', resolve);
    });
    this.#socket!.off('drain', this.#wake!);
    this.#wake = null;
    if (this.#failure) throw this.#failure;
  }

  /** Ends the COPY; resolves when the server has taken every row. */
  async end(): Promise<void> {
    await this.#started.promise;
    if (this.#failure) throw this.#failure;
    const trailer = copyDataMessage(2);
    trailer.writeInt16BE(-1, TUPLES_AT);
    this.#socket!.write(Buffer.concat([trailer, Buffer.from([COPY_DONE, 0, 0, 0, 4])]));
    await this.#done.promise;
  }

  /** Ends the COPY without its rows, and whoever writes to it with an error; the transaction is then aborted. */
  async abort(): Promise<void> {
    await this.#started.promise.catch(() => {});
    if (!this.#failure) {
      this.#failure = new Error('the COPY was ended without its rows');
      this.#socket!.write(Buffer.from([COPY_FAIL, 0, 0, 0, 5, 0]));
      this.#wake?.();
    }
    await this.#done.promise.catch(() => {});
  }

  // What pg's client calls on a query that brings its own protocol handling.

  submit(connection: pg.Connection): void {
    const { stream } = connection as unknown as PgConnection;
    this.#socket = stream;
    (connection as unknown as PgConnection).query(this.#text);
  }

  handleCopyInResponse(): void {
    this.#socket!.write(Buffer.concat([copyDataMessage(SIGNATURE.length).subarray(0, TUPLES_AT), SIGNATURE]));
    this.#started.resolve();
  }

  handleReadyForQuery(): void {
    this.#done.resolve();
  }

  handleError(error: Error): void {
    this.#failure ??= error;
    this.#started.reject(error);
    this.#done.reject(error);
    this.#wake?.();
  }

  handleCommandComplete(): void {}
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

function withResolvers(): { promise: Promise<void>; resolve(): void; reject(error: Error): void } {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

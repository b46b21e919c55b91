import type { Socket } from 'node:net';
import type pg from 'pg';
import { type CopyIn, copyDataMessage, TUPLES_AT } from './copy-in.ts';

/** The signature with flags and extension length, with which every COPY stream begins. */
const SIGNATURE_BYTES = 19;
const TRAILER_BYTES = 2;

/** Sends the rows of `copy … to stdout (format binary)` on one connection into a COPY that is open on another. */
export function relayCopy(from: pg.Client, text: string, into: CopyIn): Promise<void> {
  return new Promise((resolve, reject) => {
    from.query(new CopyRelay(text, into, resolve, reject));
  });
}

class CopyRelay {
  readonly #text: string;
  readonly #into: CopyIn;
  readonly #resolve: () => void;
  readonly #reject: (error: Error) => void;
  #socket: Socket | null = null;
  #writing: Promise<void> = Promise.resolve();
  #first = true;

  constructor(text: string, into: CopyIn, resolve: () => void, reject: (error: Error) => void) {
    this.#text = text;
    this.#into = into;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: pg.Connection): void {
    const { stream, query } = connection as unknown as { stream: Socket; query(text: string): void };
    this.#socket = stream;
    query.call(connection, this.#text);
  }

  /** The server sends one message for each tuple; the header comes with the first, the trailer alone. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const tuples = this.#first ? chunk.subarray(SIGNATURE_BYTES) : chunk;
    this.#first = false;
    const isTrailer = tuples.length === TRAILER_BYTES && tuples.readInt16BE(0) === -1;
    if (tuples.length === 0 || isTrailer) return;
    const message = copyDataMessage(tuples.length);
    tuples.copy(message, TUPLES_AT);
    this.#socket!.pause();
    this.#writing = this.#writing.then(() => this.#into.write(message));
    this.#writing.then(
      () => this.#socket!.resume(),
      () => this.#socket!.resume(),
    );
  }

  handleReadyForQuery(): void {
    this.#writing.then(this.#resolve, this.#reject);
  }

  handleError(error: Error): void {
    this.#reject(error);
  }

  handleCommandComplete(): void {}
  handleRowDescription(): void {}
}

export interface Line {
  /** The line without its newline; at most the limit. Valid only during the call. */
  readonly bytes: Buffer;
  /** How many more bytes it had. */
  readonly cutBytes: number;
}

export interface LineSplitterOptions {
  readonly lineBytesMax: number;
  readonly onLine: (line: Line) => void;
}

/** Cuts a byte stream into lines. Keeps at most `lineBytesMax` bytes, however long a line is. */
export class LineSplitter {
  readonly #options: LineSplitterOptions;
  readonly #kept: Buffer;
  #keptBytes = 0;
  #cutBytes = 0;

  constructor(options: LineSplitterOptions) {
    this.#options = options;
    this.#kept = Buffer.alloc(options.lineBytesMax);
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let to = chunk.indexOf(0x0a); to >= 0; to = chunk.indexOf(0x0a, from)) {
      this.#finish(chunk.subarray(from, to));
      from = to + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  /** The stream is over: what has come without a newline is a line too. */
  end(): void {
    if (this.#keptBytes > 0) this.#finish(Buffer.alloc(0));
  }

  #finish(end: Buffer): void {
    if (this.#keptBytes === 0 && end.length <= this.#kept.length) {
      this.#options.onLine({ bytes: end, cutBytes: 0 });
      return;
    }
    this.#keep(end);
    const line = { bytes: this.#kept.subarray(0, this.#keptBytes), cutBytes: this.#cutBytes };
    this.#keptBytes = 0;
    this.#cutBytes = 0;
    this.#options.onLine(line);
  }

  #keep(piece: Buffer): void {
    const copied = piece.copy(this.#kept, this.#keptBytes);
    this.#keptBytes += copied;
    this.#cutBytes += piece.length - copied;
  }
}

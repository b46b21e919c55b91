import type { Log } from '../observe/log.ts';
import type { Terminal } from './shell.ts';

const CLEAR_LINE = '\r\x1b[2K';

/** One line at the bottom of a terminal that is written again and again; log lines appear above it. */
export class StatusLine {
  readonly #terminal: Terminal;
  #text = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** An empty text takes the line away. */
  show(text: string): void {
    // A line that wraps could not be taken back.
    const fitting = text.slice(0, Math.max(0, this.#terminal.columns - 1));
    if (fitting !== this.#text) this.#terminal.write(`${CLEAR_LINE}${fitting}`);
    this.#text = fitting;
  }

  /** Lets `write` print whole lines. */
  above(write: () => void): void {
    if (this.#text !== '') this.#terminal.write(CLEAR_LINE);
    write();
    this.#terminal.write(this.#text);
  }

  /** A log whose lines do not break this one. */
  logAbove(log: Log): Log {
    return {
      debug: (msg, fields) => this.above(() => log.debug(msg, fields)),
      info: (msg, fields) => this.above(() => log.info(msg, fields)),
      warn: (msg, fields) => this.above(() => log.warn(msg, fields)),
      error: (msg, fields) => this.above(() => log.error(msg, fields)),
      child: (fields) => this.logAbove(log.child(fields)),
    };
  }
}

import type { Log } from '../../../../host/observe/log.ts';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly msg: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Keeps what was logged, and lets a test wait for a line. */
export class RecordingLog implements Log {
  readonly lines: LogLine[] = [];
  readonly #waiting: { matches: (line: LogLine) => boolean; resolve: (line: LogLine) => void }[] = [];

  debug = (msg: string, fields = {}) => this.#add({ level: 'debug', msg, fields });
  info = (msg: string, fields = {}) => this.#add({ level: 'info', msg, fields });
  warn = (msg: string, fields = {}) => this.#add({ level: 'warn', msg, fields });
  error = (msg: string, fields = {}) => this.#add({ level: 'error', msg, fields });
  child = () => this;

  line(msg: string): Promise<LogLine> {
    const present = this.lines.find((line) => line.msg === msg);
    if (present !== undefined) return Promise.resolve(present);
    return new Promise((resolve) => this.#waiting.push({ matches: (line) => line.msg === msg, resolve }));
  }

  #add(line: LogLine): void {
    this.lines.push(line);
    for (const { matches, resolve } of this.#waiting) if (matches(line)) resolve(line);
  }
}

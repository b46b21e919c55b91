import { LIMIT } from '@urutau/contract';
import type { Log } from '../observe/log.ts';
import type { Clock } from './clock.ts';
import { type Line, LineSplitter } from './line-splitter.ts';
import type { Mask } from './mask.ts';

/** What is kept of one line; the rest is counted. */
const LINE_BYTES_MAX = 16_384;
/** What is passed on of one stream in a second; the rest is counted. The pipe is drained all the same. */
const LINES_PER_SECOND_MAX = 1_000;
const BYTES_PER_SECOND_MAX = 1_048_576;

export interface DriverLogOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly mask: Mask;
}

/** Passes on what a driver says on stdout and stderr, with bounded memory and work, whatever it says. */
export class DriverLog {
  readonly #stdout: Forwarder;
  readonly #stderr: Forwarder;
  readonly #tail = new Tail(LIMIT.stderrTailBytes);
  readonly #mask: Mask;

  constructor(options: DriverLogOptions) {
    this.#stdout = new Forwarder('stdout', options);
    this.#stderr = new Forwarder('stderr', options);
    this.#mask = options.mask;
  }

  stdout(chunk: Buffer): void {
    this.#stdout.push(chunk);
  }

  stderr(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#stderr.push(chunk);
  }

  /** Passes on the last lines, also those without a newline. */
  end(): void {
    this.#stdout.end();
    this.#stderr.end();
  }

  /** The last 64 KiB of stderr. */
  stderrTail(): string {
    return this.#mask(this.#tail.text(), this.#tail.isCut ? 'at its start' : undefined);
  }
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

class Forwarder {
  readonly #stream: 'stdout' | 'stderr';
  readonly #options: DriverLogOptions;
  readonly #lines = new LineSplitter({ lineBytesMax: LINE_BYTES_MAX, onLine: (line) => this.#pass(line) });
  #second = { startedMs: Number.NEGATIVE_INFINITY, lines: 0, bytes: 0 };
  #leftOut = { lines: 0, bytes: 0 };

  constructor(stream: 'stdout' | 'stderr', options: DriverLogOptions) {
    this.#stream = stream;
    this.#options = options;
  }

  push(chunk: Buffer): void {
    this.#lines.push(chunk);
  }

  end(): void {
    this.#lines.end();
    this.#reportLeftOut();
  }

  #pass(line: Line): void {
    if (line.bytes.length === 0) return;
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - this.#second.startedMs >= 1_000) {
      this.#second = { startedMs: nowMs, lines: 0, bytes: 0 };
      this.#reportLeftOut();
    }
    if (this.#second.lines >= LINES_PER_SECOND_MAX || this.#second.bytes >= BYTES_PER_SECOND_MAX) {
      this.#leftOut.lines++;
      this.#leftOut.bytes += line.bytes.length + line.cutBytes;
      return;
    }
    this.#second.lines++;
    this.#second.bytes += line.bytes.length;
    const { level, msg, fields } = maskedLine(line, this.#options.mask);
    this.#options.log[level](msg, { stream: this.#stream, ...fields });
  }

  #reportLeftOut(): void {
    if (this.#leftOut.lines === 0) return;
    this.#options.log.warn('driver logs faster than is passed on; lines were left out', {
      stream: this.#stream,
      ...this.#leftOut,
    });
    this.#leftOut = { lines: 0, bytes: 0 };
  }
}

function maskedLine({ bytes, cutBytes }: Line, mask: Mask): ParsedLine {
  const text = bytes.toString('utf8').replace(/\r$/, '');
  if (cutBytes > 0) return raw(`${mask(text, 'at its end')}… [${cutBytes} bytes cut]`);
  const { level, msg, fields } = parseLine(text);
  try {
    // Parsed first and spelled anew, for JSON can write any character as an escape.
    return { level, msg: mask(msg), fields: JSON.parse(mask(JSON.stringify(fields))) };
  } catch {
    return raw(mask(text)); // A secret that was a number, or a part of the syntax.
  }
}

interface ParsedLine {
  readonly level: Level;
  readonly msg: string;
  readonly fields: Record<string, unknown>;
}

/** A line that is not a JSON object with a message is passed on as it is, as info. */
export function parseLine(text: string): ParsedLine {
  if (!text.startsWith('{')) return raw(text);
  try {
    const { level, msg, ...fields } = JSON.parse(text) as Record<string, unknown>;
    return typeof msg === 'string'
      ? { level: LEVELS.find((known) => known === level) ?? 'info', msg, fields }
      : raw(text);
  } catch {
    return raw(text);
  }
}

function raw(text: string): ParsedLine {
  return { level: 'info', msg: text, fields: {} };
}

/** The last bytes of a stream, in one buffer that is overwritten in a ring. */
class Tail {
  readonly #ring: Buffer;
  #at = 0;
  #full = false;

  constructor(bytes: number) {
    this.#ring = Buffer.alloc(bytes);
  }

  push(chunk: Buffer): void {
    let rest = chunk.subarray(Math.max(0, chunk.length - this.#ring.length));
    while (rest.length > 0) {
      const copied = rest.copy(this.#ring, this.#at);
      rest = rest.subarray(copied);
      this.#at += copied;
      if (this.#at === this.#ring.length) {
        this.#at = 0;
        this.#full = true;
      }
    }
  }

  get isCut(): boolean {
    return this.#full;
  }

  text(): string {
    const newest = this.#ring.subarray(0, this.#at);
    return (this.#full ? Buffer.concat([this.#ring.subarray(this.#at), newest]) : newest).toString('utf8');
  }
}

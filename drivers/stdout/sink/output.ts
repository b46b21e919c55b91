import { createWriteStream, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { isatty, WriteStream } from 'node:tty';
import { UrutauError } from '@urutau/sdk';

/** Text on its way out through a file descriptor, with the backpressure of whoever reads it. */
export interface Output {
  /** Resolves when the descriptor has taken the text. Texts keep the order of the calls. */
  write(text: string): Promise<void>;
  /** Resolves when every text so far has been taken. */
  flush(): Promise<void>;
  /** The same, but does not wait for ever for a reader who has stopped: the next run brings these lines again. */
  close(): Promise<void>;
}

const CLOSE_MS = 3_000;

/** `broken` is told once why nothing can be written any more; the writes that are waiting never resolve. */
export function openOutput(fd: number, broken: (why: string) => void): Output {
  const stream = streamOf(fd);
  stream.once('error', (error) => broken(reasonOf(error)));
  // Later errors repeat the first.
  stream.on('error', () => {});
  let last = Promise.resolve();
  return {
    write: (text) => {
      last = new Promise((resolve) => {
        stream.write(text, (error) => {
          if (!error) resolve();
        });
      });
      return last;
    },
    flush: () => last,
    close: () => Promise.race([last, setTimeout(CLOSE_MS)]),
  };
}

/**
 * A pipe is written through the event loop and never through a thread: a thread that waits for a reader who has
 * stopped reading would keep the process from ending.
 */
function streamOf(fd: number): Writable {
  try {
    const stat = fstatSync(fd);
    if (stat.isFIFO() || stat.isSocket()) return new Socket({ fd, readable: false, writable: true });
    return isatty(fd) ? new WriteStream(fd) : createWriteStream('', { fd, autoClose: false });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UrutauError('config-invalid', `file descriptor ${fd} cannot be written to (${code})`, {
      cause,
      remedy: 'The host passes its standard output as this descriptor; start the host with an open standard output.',
    });
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'EPIPE' || code === 'ECONNRESET') return `the reader of standard output is gone (${code})`;
  return `standard output cannot be written: ${code ?? message}`;
}

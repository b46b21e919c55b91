import type { SinkDriver } from '@urutau/sdk';
import { eventLine, rowLines } from './json-lines.ts';
import type { Output } from './output.ts';

/** Prints each change as a line, in the order in which it came. At least once: what is printed stays printed. */
export function printLines(output: Output): SinkDriver {
  return {
    async openWriter({ table }) {
      return {
        async write(batch, envelope) {
          if (envelope.event) await output.write(eventLine(table, envelope, envelope.event));
          // The next lines are made when these are taken, so a large batch is never whole in memory as text.
          if (batch) for (const lines of rowLines(table, batch)) await output.write(lines);
        },
        async end() {},
        async discard() {},
      };
    },
    flush: () => output.flush(),
    close: () => output.close(),
  };
}

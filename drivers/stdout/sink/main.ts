import { writeSync } from 'node:fs';
import { defineSink, ENV, serve, UrutauError } from '@urutau/sdk';
import { z } from 'zod';
import { countRows } from './count-rows.ts';
import { openOutput } from './output.ts';
import { printLines } from './print-lines.ts';

serve(
  defineSink({
    name: 'stdout',
    version: '0.1.0',
    config: z.strictObject({
      /** Counts the rows and throws them away. */
      discard: z.boolean().default(false),
      /** Fields of every sink, without a meaning here. */
      namespace: z.string().optional(),
      tablePrefix: z.string().optional(),
    }),
    async start({ config, hostStdout, log }) {
      if (config.discard) return countRows(log);
      if (hostStdout === null) {
        throw new UrutauError(
          'config-invalid',
          `${ENV.hostStdout} is not set: there is no standard output to write to`,
          {
            remedy: "Keep `stdout: host` in the driver's plugin.yaml; the host then passes its standard output on.",
          },
        );
      }
      return printLines(openOutput(hostStdout, endWithTheReader));
    },
  }),
);

/** Nobody will ever read another line: exit 2, for no restart would mend that (EXIT-1). */
function endWithTheReader(why: string): never {
  writeSync(2, `${why}\n`);
  process.exit(2);
}

import { setTimeout as delay } from 'node:timers/promises';
import { defineSink, serve } from '@urutau/sdk';
import { z } from 'zod';

/** A sink that takes so many bytes a second and no more, and throws them away. */
serve(
  defineSink({
    name: 'slow-sink',
    version: '0.1.0',
    config: z.strictObject({ bytesPerSecond: z.int().min(1) }),
    async start({ config: { bytesPerSecond } }) {
      return {
        async openWriter() {
          return {
            async write(batch) {
              if (batch) await delay((1000 * batch.byteLength) / bytesPerSecond);
            },
            async end() {},
            async discard() {},
          };
        },
        async flush() {},
        async close() {},
      };
    },
  }),
);

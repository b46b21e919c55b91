import { defineSink, serve } from '@urutau/sdk';
import { z } from 'zod';
import { defiant } from './defiant.ts';

/** A sink that keeps nothing, and does not come back from the call that its config names. It answers heartbeats. */
serve(
  defineSink({
    name: 'stuck-sink',
    version: '0.1.0',
    config: z.strictObject({
      stuckIn: z.enum(['start', 'checkpoint', 'write', 'commit', 'close']).optional(),
      defiant: z.boolean().default(false),
    }),
    async start({ config, log }) {
      if (config.defiant) defiant();
      const stored = new Map<string, string>();
      const pass = async (call: string) => {
        if (call !== config.stuckIn) return;
        process.stderr.write(`stuck in ${call}\n`);
        await new Promise(() => setInterval(() => {}, 60_000));
      };
      await pass('start');
      log.info('works');
      return {
        capabilities: { commit: 'atomic' as const },
        async openWriter() {
          return { write: () => pass('write'), async end() {}, async discard() {} };
        },
        async checkpoint(_, tables) {
          await pass('checkpoint');
          return Object.fromEntries(tables.map((table) => [table, { checkpoint: stored.get(table) ?? null }]));
        },
        async commit({ table, through, checkpoint }) {
          // The first commit of a stream has no rows.
          if (through > 0) await pass('commit');
          stored.set(table, checkpoint);
        },
        async flush() {},
        close: () => pass('close'),
      };
    },
  }),
);

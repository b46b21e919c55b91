import { appendFileSync } from 'node:fs';
import { defineSink, serve, UrutauError } from '@urutau/sdk';
import { z } from 'zod';

/** A sink with `commit/1` that keeps everything in memory, and writes down in `journal` what was asked of it. */
serve(
  defineSink({
    name: 'committing',
    version: '0.1.0',
    config: z.strictObject({ journal: z.string(), refuseSeq: z.number().optional() }),
    async start({ config: { journal, refuseSeq } }) {
      const note = (text: string) => appendFileSync(journal, `${text}\n`);
      const stored = new Map<string, string>();
      return {
        capabilities: { commit: 'atomic' as const, maxUncommitted: { bytes: 64 * 1024 * 1024 } },
        async openWriter({ table, stream }) {
          note(`open ${table} ${stream}`);
          return {
            async write(batch, { seq }) {
              if (seq === refuseSeq) throw new UrutauError('row-refused', 'too long', { table, stream, seq, row: 0 });
              note(`write ${stream}/${seq} ${batch?.rows ?? 0}`);
            },
            async end() {
              note(`end ${stream}`);
            },
            async discard() {
              note(`discard ${stream}`);
            },
          };
        },
        async checkpoint(_, tables) {
          return Object.fromEntries(tables.map((table) => [table, { checkpoint: stored.get(table) ?? null }]));
        },
        async commit({ table, stream, through, checkpoint, previous }) {
          const current = stored.get(table) ?? null;
          if (current !== previous) throw new UrutauError('fenced', 'another is stored', { table, stored: current });
          stored.set(table, checkpoint);
          note(`commit ${stream}/${through}`);
        },
        async flush() {},
        async close() {},
      };
    },
  }),
);

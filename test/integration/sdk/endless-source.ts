import { writeFileSync } from 'node:fs';
import {
  arrowTypeOf,
  type BytesBuilder,
  ChangeBatchBuilder,
  defineSource,
  serve,
  type TableShape,
  UrutauError,
} from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { z } from 'zod';

const SHAPE: TableShape = {
  fields: [new Field('payload', arrowTypeOf('binary'), true)],
  primaryKey: [],
  before: 'none',
};
const ROW_BYTES = 64 * 1024;
const ROWS = 16;
const PAYLOAD = new Uint8Array(ROW_BYTES);

/** A source whose one table, `endless`, yields 1 MiB batches as fast as they are taken. */
serve(
  defineSource({
    name: 'endless',
    version: '0.1.0',
    /** `tally` is a file that holds the number of batches made so far, and whether the stream was closed. */
    config: z.strictObject({ tally: z.string().optional(), refuse: z.string().optional() }),
    async start({ config: { tally, refuse } }) {
      return {
        async listTables() {
          return [{ name: 'endless', supportsSnapshot: false }];
        },
        async read({ table }) {
          if (table !== 'endless') throw new UrutauError('table-not-found', `there is no table ${table}`, { table });
          return { shape: SHAPE, metadata: { stream: 'one' }, open: () => batches(tally, refuse) };
        },
        async close() {},
      };
    },
  }),
);

async function* batches(tally: string | undefined, refuse: string | undefined) {
  const builder = new ChangeBatchBuilder(SHAPE);
  const [payload] = builder.after as [BytesBuilder];
  let made = 0;
  try {
    for (;;) {
      for (let row = 0; row < ROWS; row++) {
        payload.append(PAYLOAD, 0, ROW_BYTES);
        builder.close('c', Uint8Array.of(made, row), null);
      }
      made++;
      if (tally) writeFileSync(tally, `${made}`);
      if (refuse && made === 3) throw new UrutauError('source-unavailable', refuse);
      yield { batch: builder.finish(), envelope: {} };
    }
  } finally {
    if (tally) writeFileSync(tally, `${made} closed`);
  }
}

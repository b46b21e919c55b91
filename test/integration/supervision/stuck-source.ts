import { setTimeout as delay } from 'node:timers/promises';
import { arrowTypeOf, type BytesBuilder, ChangeBatchBuilder, defineSource, serve, type TableShape } from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { z } from 'zod';
import { defiant } from './defiant.ts';

const TABLE = 'blobs';
const SHAPE: TableShape = {
  fields: [new Field('id', arrowTypeOf('string'), false), new Field('payload', arrowTypeOf('binary'), true)],
  primaryKey: ['id'],
  before: 'none',
};
const PAYLOAD = new Uint8Array(512 * 1024);

/** A source of one table, whose rows come as fast as they are read; or which falls silent and ends for nobody. */
serve(
  defineSource({
    name: 'stuck-source',
    version: '0.1.0',
    config: z.strictObject({ stuckIn: z.enum(['read']).optional(), defiant: z.boolean().default(false) }),
    async start({ config }) {
      if (config.defiant) defiant();
      return {
        capabilities: { offsetOrder: 'bytes' },
        async listTables() {
          return [{ name: TABLE, supportsSnapshot: false, primaryKey: ['id'] }];
        },
        async assign({ tables }) {
          const begin = tables.map(({ table, fromOffset }) => [table, { start: fromOffset ?? offsetOf(0) }] as const);
          return { source: 'stuck-source', tables: Object.fromEntries(begin) };
        },
        async read() {
          return { shape: SHAPE, metadata: { stream: 'only' }, open: () => batches(config.stuckIn === 'read') };
        },
        async close() {},
      };
    },
  }),
);

async function* batches(stuck: boolean) {
  const builder = new ChangeBatchBuilder(SHAPE);
  const [id, payload] = builder.after as [BytesBuilder, BytesBuilder];
  for (let row = 1; ; row++) {
    id.appendString(`row ${row}`);
    payload.append(PAYLOAD, 0, PAYLOAD.length);
    builder.close('c', Uint8Array.of(0), null);
    yield { batch: builder.finish(), envelope: { offset: offsetOf(row), phase: 'stream' as const } };
    if (stuck) {
      process.stderr.write('stuck in read\n');
      await new Promise(() => setInterval(() => {}, 60_000));
    }
    await delay(5);
  }
}

function offsetOf(row: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(row, 4);
  return bytes.toString('base64');
}

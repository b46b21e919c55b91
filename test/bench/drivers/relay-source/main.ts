import { writeFileSync } from 'node:fs';
import {
  arrowTypeOf,
  type BytesBuilder,
  ChangeBatchBuilder,
  defineSource,
  type EncodedBatch,
  type SourceBatch,
  serve,
  type TableShape,
} from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { z } from 'zod';

const TABLE = 'blobs';
const STREAM = 'only';
const ROWS = 16;
const SHAPE: TableShape = {
  fields: [new Field('id', arrowTypeOf('string'), false), new Field('payload', arrowTypeOf('binary'), true)],
  primaryKey: ['id'],
  before: 'none',
};

/** A source that costs nothing: it sends one ready batch again and again. */
serve(
  defineSource({
    name: 'relay-source',
    version: '0.1.0',
    config: z.strictObject({
      bodyBytes: z.int().min(1024),
      batches: z.int().min(1),
      /** File that takes bytes and times as JSON when the last batch has been taken. */
      tally: z.string(),
    }),
    async start({ config }) {
      const { batches } = config;
      let handedOut = 0;
      return {
        capabilities: { offsetOrder: 'bytes' },
        async listTables() {
          return [{ name: TABLE, supportsSnapshot: false, primaryKey: ['id'] }];
        },
        async assign({ tables }) {
          const start = offsetOf(0);
          const begin = tables.map(({ table, fromOffset }) => [table, { start: fromOffset ?? start }] as const);
          return { source: 'relay-source', tables: Object.fromEntries(begin) };
        },
        async head() {
          return offsetOf(batches);
        },
        async progress(tables) {
          const at = { stream: STREAM, decoded: offsetOf(handedOut), seq: handedOut };
          return { tables: Object.fromEntries(tables.map((table) => [table, at])) };
        },
        async read() {
          return {
            shape: SHAPE,
            metadata: { stream: STREAM },
            open: (signal) => repeat(config, signal, () => handedOut++),
          };
        },
        async close() {},
      };
    },
  }),
);

async function* repeat(
  { bodyBytes, batches, tally }: { bodyBytes: number; batches: number; tally: string },
  signal: AbortSignal,
  count: () => void,
): AsyncGenerator<SourceBatch> {
  const batch = batchOf(bodyBytes);
  const firstMs = performance.now();
  for (let sent = 1; sent <= batches; sent++) {
    count();
    yield { batch, envelope: { offset: offsetOf(sent), phase: 'stream' } };
  }
  writeFileSync(tally, JSON.stringify({ bytes: batches * batch.bodyLength, firstMs, lastMs: performance.now() }));
  if (!signal.aborted) await new Promise((ended) => signal.addEventListener('abort', ended, { once: true }));
}

function batchOf(bodyBytes: number): EncodedBatch {
  const builder = new ChangeBatchBuilder(SHAPE);
  const [id, payload] = builder.after as [BytesBuilder, BytesBuilder];
  const value = new Uint8Array(Math.floor(bodyBytes / ROWS) - 64).fill(7);
  for (let row = 0; row < ROWS; row++) {
    id.appendString(`row ${row}`);
    payload.append(value, 0, value.length);
    builder.close('c', Uint8Array.of(row), null);
  }
  const { body, ...batch } = builder.finish();
  return { ...batch, body: [Buffer.concat(body)] };
}

/** Eight bytes, so that their order is the order of the batches. */
function offsetOf(batch: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(batch, 4);
  return bytes.toString('base64');
}

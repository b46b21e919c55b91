import { arrowTypeOf, type TableShape, UrutauError } from '@urutau/contract';
import { type BytesBuilder, ChangeBatchBuilder } from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { expect, test } from 'vitest';
import { type Checkpoint, decodeCheckpoint, encodeCheckpoint } from '../../../../../host/checkpoint/checkpoint.ts';
import { type Batch, batchOf } from '../../../../../host/pipeline/batch.ts';
import type { DeadLetter } from '../../../../../host/pipeline/quarantine/dead-letter.ts';
import { DeadLetterBox } from '../../../../../host/pipeline/quarantine/dead-letter-box.ts';
import { divert, keysOfRow } from '../../../../../host/pipeline/quarantine/divert.ts';
import { QuarantinedKeys } from '../../../../../host/pipeline/quarantine/quarantined-keys.ts';
import { replay } from '../../../../../host/pipeline/quarantine/replay.ts';
import type { SinkPort, TableSink } from '../../../../../host/pipeline/sink/port.ts';
import { SmallSink } from '../small-ports.ts';

const SHAPE: TableShape = {
  fields: [new Field('id', arrowTypeOf('string'), false)],
  primaryKey: ['id'],
  before: 'none',
};
const table = {
  source: 'public.orders',
  target: 'orders',
  writeMode: 'upsert',
  onDelete: 'record',
  onPoison: 'quarantine',
  onTruncate: 'fail',
  createIfNotExists: true,
} as const;

test('rows that a commit of a replay names together are left out together, and the others are freed', async () => {
  const { keys, letters } = quarantined('ABCDE');
  const letterSink = new SmallSink();
  const streams: number[] = [];
  let stored = encodeCheckpoint({
    v: 1,
    writer: 'shop',
    run: 'r1',
    source: 's',
    stream: 1,
    commit: 0,
    offset: 'o',
    schemaId: null,
    shape: 'upsert',
    snapshot: 'done',
    ...keys.stored(),
  } satisfies Checkpoint);
  const sink: SinkPort = {
    ...letterSink.port,
    checkpoints: async () => new Map([['orders', stored]]),
    open: (_, stream): TableSink => {
      streams.push(stream);
      let seq = 0;
      return {
        onFailure: () => {},
        get seq() {
          return seq;
        },
        write: async () => void seq++,
        commit: async (text) => {
          // Of the first try the second and the fourth row, of any later one none.
          if (stream === 2 && seq > 0) {
            throw new UrutauError('row-refused', 'no', { stream, seq: 2, row: 0, more: [[4, 0]] });
          }
          stored = text;
        },
        close: () => {},
      };
    },
  };
  const claim = { isMade: false };

  const replayed = await replay({
    table,
    sink,
    source: 'small',
    writer: 'shop',
    run: 'r1',
    seenRun: 'r1',
    box: new DeadLetterBox({ sink: letterSink.port, target: 'letters', writer: 'shop', run: 'r1', claim }),
    letters: async function* () {
      yield* letters;
    },
  });

  expect(replayed.refused.map(({ key, reason }) => [key, reason])).toEqual([
    ['{"id":"B"}', 'no'],
    ['{"id":"D"}', expect.stringContaining('another row of the same commit')],
  ]);
  expect(replayed).toMatchObject({ keys: 3, changes: 3 });
  expect(decodeCheckpoint(stored, 'orders').quarantined).toEqual([keys.hashes()[1], keys.hashes()[3]]);
  expect(streams).toEqual([2, 3, 4]);
  // The three that went through are removed, the two that did not are written with their new reason.
  expect(letterSink.commits.map(({ rows }) => rows)).toEqual([0, 3, 2]);
});

function quarantined(ids: string): { keys: QuarantinedKeys; letters: DeadLetter[] } {
  const changes = batch(ids);
  const keys = QuarantinedKeys.none();
  for (const row of [...ids].keys()) {
    const joining = { since: 0n, run: 'r1', table: 'public.orders', why: 'no' };
    for (const key of keysOfRow(changes, SHAPE, row)) keys.add(key, joining);
  }
  let ordinal = 0n;
  const { letters } = divert(changes, {
    pipeline: 'shop',
    run: 'r1',
    table: 'public.orders',
    target: 'orders',
    shape: SHAPE,
    keys,
    nextOrdinal: () => ++ordinal,
    refusalOf: () => null,
    wallMs: () => 0,
  });
  return { keys, letters };
}

function batch(ids: string): Batch {
  const builder = new ChangeBatchBuilder(SHAPE);
  for (const [row, id] of [...ids].entries()) {
    (builder.after[0] as BytesBuilder).appendString(id);
    builder.close('c', Uint8Array.of(row), null);
  }
  const { header, body, ops } = builder.finish();
  return batchOf({ seq: 0, rows: ids.length, ops }, header, body);
}

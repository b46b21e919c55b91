import { arrowTypeOf, type TableShape, UrutauError } from '@urutau/contract';
import { type BytesBuilder, ChangeBatchBuilder } from '@urutau/sdk';
import { Field } from 'apache-arrow';
import { expect, test } from 'vitest';
import { type Checkpoint, decodeCheckpoint } from '../../../../../host/checkpoint/checkpoint.ts';
import { type Batch, batchOf } from '../../../../../host/pipeline/batch.ts';
import { CheckpointedStream } from '../../../../../host/pipeline/checkpointed-stream.ts';
import type { DeadLetter } from '../../../../../host/pipeline/quarantine/dead-letter.ts';
import { QuarantinedKeys } from '../../../../../host/pipeline/quarantine/quarantined-keys.ts';
import { QuarantiningStream, type SetAside } from '../../../../../host/pipeline/quarantine/quarantining-stream.ts';
import type { TableSink } from '../../../../../host/pipeline/sink/port.ts';

const SHAPE: TableShape = {
  fields: [new Field('id', arrowTypeOf('string'), false)],
  primaryKey: ['id'],
  before: 'none',
};
const identity = { v: 1, writer: 'shop', run: 'r1', source: 's', schemaId: null, shape: 'upsert' } as const;
const at = (offset: string) => ({ offset, snapshot: 'done' }) as const;

/** A destination that refuses some ids at their commit, one at a time, and says in which order things became durable. */
class Destination {
  readonly refuses = new Set<string>();
  readonly events: string[] = [];
  readonly checkpoints: Checkpoint[] = [];
  /** What the answer to the next commit with rows is to wait for. */
  held: Promise<void> = Promise.resolve();

  open(number: number): TableSink {
    let seq = 0;
    let sent: { seq: number; ids: string[] }[] = [];
    const sink: TableSink = {
      onFailure: () => {},
      get seq() {
        return seq;
      },
      write: async ({ envelope, body }) => {
        sent.push({ seq: ++seq, ids: envelope.event ? ['truncate'] : idsOf(body, envelope.rows) });
      },
      commit: async (text) => {
        const mine = sent;
        sent = [];
        if (seq > 0) seq++;
        if (mine.length > 0) await this.held;
        for (const { seq, ids } of mine) {
          const row = ids.findIndex((id) => this.refuses.has(id));
          if (row >= 0) throw new UrutauError('row-refused', `no ${ids[row]}`, { stream: number, seq, row });
        }
        const checkpoint = decodeCheckpoint(text, 'orders');
        this.checkpoints.push(checkpoint);
        this.events.push(`${number}: ${mine.flatMap(({ ids }) => ids).join(' ')} at ${checkpoint.offset}`);
      },
      close: () => {},
    };
    return sink;
  }
}

/** Ids are one letter long, so the data of the one text column is them. */
function idsOf(body: readonly Uint8Array[], rows: number): string[] {
  const bytes = Buffer.concat(body).toString('latin1');
  return [...bytes.matchAll(/[A-Z]+/g)]
    .map(([run]) => run)
    .find((run) => run.length === rows)!
    .split('');
}

function quarantining(
  more: { takesRefusals?: boolean; store?: (letters: readonly DeadLetter[]) => Promise<void> } = {},
) {
  const destination = new Destination();
  const told: SetAside[] = [];
  const failures: UrutauError[] = [];
  const voided: bigint[] = [];
  const ordinals: bigint[] = [];
  const stream = new QuarantiningStream({
    pipeline: 'shop',
    run: 'r1',
    table: 'public.orders',
    target: 'orders',
    shape: SHAPE,
    open: (number, stored) =>
      new CheckpointedStream({
        table: 'orders',
        sink: destination.open(number),
        identity: { ...identity, stream: number },
        stored,
      }),
    first: { number: 1, stored: null },
    position: at('start'),
    keys: QuarantinedKeys.none(),
    takesRefusals: true,
    store: async (letters) => {
      ordinals.push(...letters.map(({ ordinal }) => ordinal));
      destination.events.push(`letters ${letters.map(({ key }) => key.slice(7, 8)).join(' ')}`);
    },
    quarantined: (letters) => told.push(...letters),
    voided: (before) => voided.push(before),
    wallMs: () => 0,
    ...more,
  });
  stream.onFailure = (error) => failures.push(error);
  return { stream, destination, told, failures, voided, ordinals };
}

test('a refused row is set aside before the rows around it are durable, and they are written once more', async () => {
  const { stream, destination, told, failures } = quarantining();
  destination.refuses.add('B');
  await stream.commit(at('start'));

  await stream.write(batch('ABC'));
  const checkpoint = await stream.commit(at('one'));
  await stream.write(batch('BD'));
  await stream.commit(at('two'));

  expect(destination.events).toEqual([
    '1:  at start',
    '2:  at start',
    'letters B',
    '2: A C at one',
    'letters B',
    '2: D at two',
  ]);
  // The key is in the checkpoint before the first dead letter is anywhere.
  expect(destination.checkpoints[1]!.quarantined).toEqual(checkpoint.quarantined);
  expect(checkpoint.quarantined).toHaveLength(1);
  expect(told.map(({ code, reason }) => [code, reason])).toEqual([
    ['row-refused', 'no B'],
    ['follows', 'an earlier change of this row was refused'],
  ]);
  expect(failures).toEqual([]);
});

test('rows that flow behind a commit which is refused are written once more behind it', async () => {
  const { stream, destination } = quarantining();
  destination.refuses.add('B');
  await stream.commit(at('start'));
  let answer = () => {};
  destination.held = new Promise((resolve) => {
    answer = resolve;
  });

  await stream.write(batch('AB'));
  const first = stream.commit(at('one'));
  await stream.write(batch('CB'));
  answer();
  await first;
  await stream.commit(at('two'));

  expect(destination.events.slice(1)).toEqual(['2:  at start', 'letters B', '2: A at one', 'letters B', '2: C at two']);
});

test('a truncate makes what was set aside void, and a row that is refused after it is set aside anew', async () => {
  const { stream, destination, voided, ordinals } = quarantining();
  destination.refuses.add('B');
  await stream.commit(at('start'));

  await stream.write(batch('AB'));
  await stream.write(truncate());
  await stream.write(batch('BC'));
  const { quarantined } = await stream.commit(at('one'));

  expect(destination.events.at(-1)).toMatch(/: A truncate C at one$/);
  expect(quarantined).toHaveLength(1);
  // Those of the last attempt: the one before the truncate is void, the one behind it is not.
  expect(voided).toHaveLength(1);
  expect(ordinals.slice(-2).map((ordinal) => ordinal < voided[0]!)).toEqual([true, false]);

  destination.refuses.clear();
  await stream.write(truncate());
  await stream.write(batch('B'));
  expect((await stream.commit(at('two'))).quarantined).toBeUndefined();
});

test.each([
  ['a refusal that names no row', {}, new UrutauError('row-refused', 'a row', { stream: 1 })],
  ['another failure', {}, new UrutauError('sink-unavailable', 'away')],
  ['a refusal where rows are not to be set aside', { takesRefusals: false }, null],
])('%s ends the stream with its reason', async (_, more, error) => {
  const { stream, destination, failures } = quarantining(more);
  await stream.commit(at('start'));
  if (error) destination.held = Promise.reject(error);
  else destination.refuses.add('A');
  destination.held.catch(() => {});

  await stream.write(batch('A'));
  const reason = error?.message ?? 'no A';
  await expect(stream.commit(at('one'))).rejects.toThrow(reason);

  expect(failures.map(({ message }) => message)).toEqual([reason]);
  await expect(stream.write(batch('A'))).rejects.toThrow(reason);
});

test('where the dead letters cannot be written no commit covers their rows', async () => {
  const away = new UrutauError('sink-unavailable', 'the dead letters are away');
  const { stream, destination, failures } = quarantining({ store: () => Promise.reject(away) });
  destination.refuses.add('A');
  await stream.commit(at('start'));

  await stream.write(batch('AB'));
  await expect(stream.commit(at('one'))).rejects.toBe(away);

  expect(destination.events).toEqual(['1:  at start', '2:  at start']);
  expect(failures).toEqual([away]);
});

test('a stream that is closed while its dead letters are being stored commits nothing more', async () => {
  let stored = () => {};
  const storing = new Promise<void>((resolve) => {
    stored = resolve;
  });
  const { stream, destination } = quarantining({ store: () => storing });
  destination.refuses.add('A');
  await stream.commit(at('start'));
  await stream.write(batch('AB'));
  const commit = stream.commit(at('one'));
  commit.catch(() => {});
  await expect.poll(() => destination.events.length).toBe(2);

  stream.close();
  stored();
  await expect(commit).rejects.toThrow('was closed');
  await new Promise(setImmediate);

  expect(destination.events).toEqual(['1:  at start', '2:  at start']);
});

function batch(ids: string): Batch {
  const builder = new ChangeBatchBuilder(SHAPE);
  for (const [row, id] of [...ids].entries()) {
    (builder.after[0] as BytesBuilder).appendString(id);
    builder.close('c', Uint8Array.of(row), null);
  }
  const { header, body, ops } = builder.finish();
  return batchOf({ seq: 0, rows: ids.length, ops }, header, body);
}

function truncate(): Batch {
  return batchOf({ seq: 0, rows: 0, event: { kind: 'truncate' } }, new Uint8Array(0), []);
}

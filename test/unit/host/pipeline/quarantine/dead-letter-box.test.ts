import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { encodeCheckpoint } from '../../../../../host/checkpoint/checkpoint.ts';
import type { DeadLetter } from '../../../../../host/pipeline/quarantine/dead-letter.ts';
import { DeadLetterBox } from '../../../../../host/pipeline/quarantine/dead-letter-box.ts';
import { SmallSink } from '../small-ports.ts';

const letter: DeadLetter = {
  pipeline: 'shop',
  target: 'orders',
  position: 'snapshot:k',
  ordinal: 1n,
  epoch: 'r1',
  key: '{"id":1}',
  op: 'c',
  commitMicros: null,
  code: 'row-refused',
  reason: 'no',
  image: '{}',
  change: Uint8Array.of(1),
  quarantinedMicros: 0n,
};

function boxes() {
  const sink = new SmallSink();
  const claim = { isMade: false };
  const open = (run: string) => new DeadLetterBox({ sink: sink.port, target: 'letters', writer: 'shop', run, claim });
  return { sink, claim, open };
}

test('a dead letter that comes while older ones are looked at for removal is stored after it, and stays', async () => {
  const { sink, open } = boxes();
  const box = open('r1');
  await box.prepare();
  const order: string[] = [];
  sink.whileCommitting = () => void order.push('commit');
  let storing = Promise.resolve();

  await box.remove(async function* () {
    order.push('look');
    storing = box.store([letter, { ...letter, position: 'other' }]);
    await new Promise(setImmediate);
    yield letter;
  });
  await storing;

  expect(order).toEqual(['look', 'commit', 'commit']);
  expect(sink.commits.map(({ rows }) => rows)).toEqual([0, 1, 2]);
});

test('where nothing is to be removed the table is not even made', async () => {
  const { sink, open } = boxes();

  await open('r1').remove(async function* () {});

  expect(sink.commits).toEqual([]);
});

test('a run that was replaced does not take the dead letters back, not even with a new sink process', async () => {
  const { sink, claim, open } = boxes();
  await open('r1').prepare();
  const common = { v: 1, writer: 'shop', source: '', schemaId: null, shape: 'dead letters', offset: null } as const;
  sink.stored.set('letters', encodeCheckpoint({ ...common, run: 'r2', stream: 2, commit: 0, snapshot: 'done' }));

  const refusal = await open('r1')
    .store([letter])
    .catch((error) => error);
  expect(refusal).toBeInstanceOf(UrutauError);
  expect(refusal.code).toBe('superseded');

  claim.isMade = false;
  await open('r1').store([letter]);
});

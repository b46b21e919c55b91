import type { SourceBatch } from '@urutau/sdk';
import { expect, test } from 'vitest';
import type { Lsn } from '../../../../../drivers/postgres/lsn.ts';
import { encodeOffsetBase64 } from '../../../../../drivers/postgres/offset.ts';
import { PgoutputDecoder, type UpdateMessage } from '../../../../../drivers/postgres/source/pgoutput.ts';
import { ReadView } from '../../../../../drivers/postgres/source/read-view.ts';
import { rowShape } from '../../../../../drivers/postgres/source/row-shape.ts';
import { type LogPosition, TableFeed } from '../../../../../drivers/postgres/source/table-feed.ts';
import { TableOutlet } from '../../../../../drivers/postgres/source/table-outlet.ts';

const text = { typmod: -1, name: 'text', type: 'b', category: 'S', base: null, formatted: 'text', oid: 25 };
const SHAPE = rowShape(
  [
    { ...text, column: 'id', notNull: true, key: true },
    { ...text, column: 'v', notNull: false, key: false },
  ],
  ['id'],
  'key',
);
const START = { lsn: 0n as Lsn, index: 0n };

/** The outlet of one table; look-ups are answered when the test says so, and then every row is found. */
function outletOf() {
  const position: LogPosition = {
    transaction: 0,
    inTransaction: false,
    commitLsn: 0n as Lsn,
    commitMicros: 0,
    decoded: 0n as Lsn,
  };
  const asked: (() => void)[] = [];
  const feed: TableFeed = new TableFeed({
    table: 'public.t',
    oid: 1,
    start: START,
    rowShape: SHAPE,
    position,
    budget: { bytes: 0 },
    onEntry: () => outlet.wake(),
  });
  const outlet: TableOutlet = new TableOutlet({
    feed,
    now: () => 0,
    lookUp: {
      table: 'public.t',
      oid: 1,
      partitioned: false,
      query: () => new Promise((resolve) => asked.push(() => resolve([['1:1:', '1', '1', '1', 'found']]))),
      readView: new ReadView(),
      sleep: () => Promise.resolve(),
    },
    moreIsComing: () => false,
    onTaken: () => {},
  });
  const decoder = new PgoutputDecoder();
  return {
    outlet,
    feed,
    asked,
    /** A transaction that changes the row with this id, whose value the server leaves out. */
    update(commitLsn: number, id: string) {
      Object.assign(position, {
        transaction: position.transaction + 1,
        inTransaction: true,
        commitLsn: BigInt(commitLsn),
      });
      const frame = Buffer.from(`U\0\0\0\x01N\0\x02t\0\0\0\x01${id}u`, 'latin1');
      feed.change(decoder.decode(frame, 0, frame.length) as UpdateMessage, frame, 0, frame.length, 0);
      Object.assign(position, { inTransaction: false, decoded: BigInt(commitLsn + 1) });
    },
    open(id: string, signal = new AbortController().signal) {
      const stream = outlet.open({ id, from: null, rowShape: SHAPE }, signal)[Symbol.asyncIterator]();
      return () => stream.next() as Promise<IteratorResult<SourceBatch>>;
    },
  };
}

const at = (lsn: bigint) => encodeOffsetBase64({ lsn: lsn as Lsn, index: 0n });
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a stream that takes over during a look-up brings its rows, and the first one brings none', async () => {
  const { outlet, feed, asked, update, open } = outletOf();
  update(100, 'a');
  feed.close();
  const first = open('first')();
  await settled();
  update(200, 'b');
  feed.close();
  const second = open('second');
  const taken = second();
  await settled();
  for (const answer of asked.splice(0)) answer();

  expect(await first).toEqual({ done: true, value: undefined });
  expect((await taken).value.envelope.offset).toBe(at(101n));
  const next = second();
  await settled();
  for (const answer of asked.splice(0)) answer();
  expect((await next).value.envelope.offset).toBe(at(201n));
  expect(outlet.progress()).toEqual({ stream: 'second', decoded: at(201n), seq: 2 });
});

test('rows whose values are being looked up do not count as decoded, and a dropped queue brings none of them', async () => {
  const { outlet, feed, asked, update, open } = outletOf();
  update(100, 'a');
  feed.close();
  const first = open('first')();
  await settled();

  expect(outlet.progress()).toEqual({ stream: 'first', decoded: at(0n), seq: 0 });

  feed.drop(new Error('dropped') as never);
  for (const answer of asked.splice(0)) answer();
  await expect(first).rejects.toThrow('dropped');
  expect(feed.bytes).toBe(0);
});

test('a stream that takes over from a waiting one is woken by what comes', async () => {
  const { asked, update, feed, open } = outletOf();
  const first = open('first')();
  await settled();
  const second = open('second')();
  await settled();
  update(100, 'a');
  feed.close();
  await settled();
  for (const answer of asked.splice(0)) answer();

  expect((await first).done).toBe(true);
  expect((await second).value.envelope.offset).toBe(at(101n));
});

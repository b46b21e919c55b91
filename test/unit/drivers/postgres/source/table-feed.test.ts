import { expect, test } from 'vitest';
import type { Lsn } from '../../../../../drivers/postgres/lsn.ts';
import { decodeOffsetBase64 } from '../../../../../drivers/postgres/offset.ts';
import {
  type DeleteMessage,
  type InsertMessage,
  PgoutputDecoder,
  type UpdateMessage,
} from '../../../../../drivers/postgres/source/pgoutput.ts';
import { rowShape } from '../../../../../drivers/postgres/source/row-shape.ts';
import { type Entry, type LogPosition, TableFeed } from '../../../../../drivers/postgres/source/table-feed.ts';

const int = { typmod: -1, name: 'int4', type: 'b', category: 'N', base: null, formatted: 'integer', oid: 23 };
const text = { typmod: -1, name: 'text', type: 'b', category: 'S', base: null, formatted: 'text', oid: 25 };
const SHAPE = rowShape(
  [
    { ...int, column: 'id', notNull: true, key: true },
    { ...text, column: 'v', notNull: false, key: false },
  ],
  ['id'],
  'key',
);

/** A feed, and a log that is written to it. */
function feedFrom(start: { lsn: bigint; index: bigint }) {
  const position: LogPosition = {
    transaction: 0,
    inTransaction: false,
    commitLsn: 0n as Lsn,
    commitMicros: 0,
    decoded: 0n as Lsn,
  };
  const budget = { bytes: 0 };
  const feed = new TableFeed({
    table: 'public.t',
    oid: 1,
    start: { lsn: start.lsn as Lsn, index: start.index },
    rowShape: SHAPE,
    position,
    budget,
    onEntry: () => {},
  });
  const decoder = new PgoutputDecoder();
  const change = (frame: Buffer) =>
    feed.change(
      decoder.decode(frame, 0, frame.length) as InsertMessage | UpdateMessage | DeleteMessage,
      frame,
      0,
      frame.length,
      0,
    );
  return {
    feed,
    budget,
    insert: (id: string) => change(Buffer.concat([tag('I'), tuple('N', [id, 'x'])])),
    updateUnchanged: (id: string) => change(Buffer.concat([tag('U'), tuple('N', [id, undefined])])),
    begin(commitLsn: bigint) {
      position.transaction++;
      position.inTransaction = true;
      position.commitLsn = commitLsn as Lsn;
    },
    commit(endLsn: bigint) {
      position.inTransaction = false;
      position.decoded = endLsn as Lsn;
    },
  };
}

test('changes up to the start are skipped, inside its transaction by their number', () => {
  const { feed, insert, begin, commit } = feedFrom({ lsn: 200n, index: 2n });
  begin(100n);
  insert('1');
  commit(110n);
  begin(200n);
  for (const id of ['2', '3', '4']) insert(id);
  commit(210n);
  begin(300n);
  insert('5');
  commit(310n);

  feed.close();

  expect(feed.queue.map(rowsOf)).toEqual([2]);
  expect(feed.queue.map(firstOf)).toEqual(['200/3']);
});

test('a batch that closes inside a transaction ends at its last change, and after it at the transaction’s end', () => {
  const { feed, insert, begin, commit } = feedFrom({ lsn: 0n, index: 0n });
  begin(100n);
  insert('1');
  insert('2');
  feed.close();
  insert('3');
  commit(110n);
  feed.close();

  expect(feed.queue.map(offsetOf)).toEqual(['100/2', '110/0']);
});

test('a change whose value must be looked up closes the batch before it, at the change before it', () => {
  const { feed, insert, updateUnchanged, begin, commit } = feedFrom({ lsn: 0n, index: 0n });
  begin(100n);
  insert('1');
  updateUnchanged('1');
  insert('2');
  commit(110n);
  feed.close();

  expect(feed.queue.map(({ kind }) => kind)).toEqual(['batch', 'kept']);
  expect(feed.queue.map(offsetOf)).toEqual(['100/1', '110/0']);
  const [, kept] = feed.queue;
  expect(
    kept?.kind === 'kept' && kept.changes.map(({ offset }) => textOf(Buffer.from(offset).toString('base64'))),
  ).toEqual(['100/2', '100/3']);
});

test('a truncate is an event of its own behind what came before it, and counts as a change', () => {
  const { feed, insert, begin, commit } = feedFrom({ lsn: 0n, index: 0n });
  begin(100n);
  insert('1');
  feed.truncate();
  insert('2');
  commit(110n);
  feed.close();

  expect(feed.queue.map(offsetOf)).toEqual(['100/1', '100/2', '110/0']);
  expect(feed.queue.map((entry) => entry.kind === 'batch' && entry.batch.envelope.event)).toEqual([
    undefined,
    { kind: 'truncate' },
    undefined,
  ]);
});

test('a value that is refused ends the table behind the batches before it, and the budget gets its bytes back', () => {
  const { feed, budget, insert, begin } = feedFrom({ lsn: 0n, index: 0n });
  begin(100n);
  insert('1');
  feed.close();
  insert('2');
  insert('no number');
  insert('3');

  expect(feed.queue.map(({ kind }) => kind)).toEqual(['batch', 'end']);
  expect(feed.queue[1]).toMatchObject({ error: { context: { table: 'public.t', key: 'id=no number' } } });
  feed.take();
  expect([feed.bytes, budget.bytes, feed.pendingRows]).toEqual([0, 0, 0]);
});

test('without rows the place moves with the log, and never behind the start', () => {
  const { feed, begin, commit } = feedFrom({ lsn: 150n, index: 0n });
  begin(100n);
  commit(110n);
  expect(feed.at.lsn).toBe(150n);

  begin(200n);
  commit(210n);
  expect(feed.at.lsn).toBe(210n);
});

const tag = (letter: string) => Buffer.concat([Buffer.from(letter), Buffer.from([0, 0, 0, 1])]);

function tuple(letter: string, values: readonly (string | undefined)[]): Buffer {
  const fields = values.map((value) => {
    if (value === undefined) return Buffer.from('u');
    const length = Buffer.alloc(4);
    length.writeInt32BE(value.length);
    return Buffer.concat([Buffer.from('t'), length, Buffer.from(value)]);
  });
  return Buffer.concat([Buffer.from(letter), Buffer.from([0, values.length]), ...fields]);
}

function offsetOf(entry: Entry): string {
  switch (entry.kind) {
    case 'batch':
      return textOf(entry.batch.envelope.offset!);
    case 'kept':
      return textOf(entry.envelope.offset!);
    case 'shape':
    case 'end':
      return entry.kind;
  }
}

function textOf(base64: string): string {
  const { lsn, index } = decodeOffsetBase64(base64);
  return `${lsn}/${index}`;
}

const rowsOf = (entry: Entry) => (entry.kind === 'batch' ? entry.batch.batch?.rows : undefined);
const firstOf = (entry: Entry) => (entry.kind === 'batch' ? `${entry.first.lsn}/${entry.first.index}` : undefined);

import { LIMIT } from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CopyBinaryDecoder } from '../../../../../drivers/postgres/source/copy-binary.ts';

type Row = (string | null)[];

const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const TRAILER = Buffer.from([0xff, 0xff]);
const ROWS: Row[] = [
  ['1', 'one', null],
  ['2', '', 'two'],
  [null, null, null],
];

const values = fc.option(fc.string({ maxLength: 40 }), { nil: null });
const tables = fc.integer({ min: 0, max: 5 }).chain((columns) =>
  fc.record({
    columns: fc.constant(columns),
    rows: fc.array(fc.array(values, { minLength: columns, maxLength: columns }), { maxLength: 20 }),
  }),
);

test('rows come out the same however the stream is cut into chunks', () => {
  fc.assert(
    fc.property(tables, fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1 }), ({ columns, rows }, sizes) => {
      const { decoder, received } = collect(columns);

      for (const chunk of chunksOf(stream(rows), sizes)) expect(decoder.push(chunk)).toBe(true);
      decoder.end();

      expect(received).toEqual(rows);
    }),
  );
});

test('a chunk may lie amid other bytes and be overwritten as soon as it has been taken', () => {
  const { decoder, received } = collect(3);
  const bytes = stream(ROWS);
  const chunk = Buffer.alloc(7);

  for (let at = 0; at < bytes.length; at += 5) {
    const length = bytes.copy(chunk, 1, at, at + 5);
    decoder.push(chunk, 1, 1 + length);
    chunk.fill(0xee);
  }

  expect(received).toEqual(ROWS);
});

test('the decoder stops between rows when asked and goes on where it was', () => {
  const { decoder, received } = collect(3, () => true);

  const answers = [decoder.push(stream(ROWS))];
  const counts = [received.length];
  while (!answers.at(-1)) {
    answers.push(decoder.resume());
    counts.push(received.length);
  }
  decoder.end();

  expect(answers).toEqual([false, false, false, true]);
  expect(counts).toEqual([1, 2, 3, 3]);
  expect(received).toEqual(ROWS);
});

test('a large value that comes in many chunks is put together', () => {
  const { decoder, received } = collect(1);
  const value = 'x'.repeat(3_000_000);

  for (const chunk of chunksOf(stream([[value], ['y']]), [65_536])) decoder.push(chunk);

  expect(received).toEqual([[value], ['y']]);
});

test('a stream that ends at any byte before its own end is a protocol violation', () => {
  const bytes = stream(ROWS);

  for (let length = 0; length < bytes.length; length++) {
    const { decoder } = collect(3);
    decoder.push(bytes.subarray(0, length));
    expect(() => decoder.end(), `cut at ${length}`).toThrow(expect.objectContaining({ code: 'protocol-violation' }));
  }
});

test.each([
  ['another signature', Buffer.concat([Buffer.alloc(19), TRAILER])],
  ['flags in the header', Buffer.concat([HEADER.subarray(0, 11), int32(1 << 16), int32(0), TRAILER])],
  ['a header extension', Buffer.concat([HEADER.subarray(0, 15), int32(4), int32(0), TRAILER])],
  ['a row of another number of fields', Buffer.concat([HEADER, row(['1', '2'])])],
  ['a negative length that is not NULL', Buffer.concat([HEADER, Buffer.from([0, 3]), int32(-2)])],
  ['bytes after the trailer', Buffer.concat([stream(ROWS), Buffer.from([0])])],
])('%s: the stream is a protocol violation', (_, bytes) => {
  expect(() => collect(3).decoder.push(bytes)).toThrow(expect.objectContaining({ code: 'protocol-violation' }));
});

test('bytes after the trailer are refused in a later chunk too', () => {
  const { decoder } = collect(3);
  decoder.push(stream(ROWS));

  expect(() => decoder.push(Buffer.from([0]))).toThrow(expect.objectContaining({ code: 'protocol-violation' }));
});

test('a row over the message limit is refused by its length alone, with the column that passes the limit', () => {
  const { decoder } = collect(3);
  const start = Buffer.concat([HEADER, Buffer.from([0, 3]), int32(1), Buffer.from('1'), int32(LIMIT.messageBytesMax)]);

  expect(() => decoder.push(start)).toThrow(
    expect.objectContaining({ code: 'row-too-large', context: { column: 'column1' } }),
  );
});

test('of a row that is too large only the fields that have come can be seen', () => {
  const { decoder } = collect(3);
  const begun = Buffer.concat([Buffer.from([0, 3]), field('key'), int32(LIMIT.messageBytesMax)]);

  decoder.push(Buffer.concat([HEADER, row(['a', 'b', 'c'])]));
  expect(() => decoder.push(begun)).toThrow(expect.objectContaining({ code: 'row-too-large' }));

  expect(Buffer.from(decoder.failedField(0)!).toString()).toBe('key');
  expect([decoder.failedField(1), decoder.failedField(2)]).toEqual([null, null]);
});

test('the fields of a row whose value was refused can still be seen', () => {
  const refusal = new Error('refused');
  const { decoder } = collect(3, undefined, (value) => {
    if (value === 'two') throw refusal;
  });

  expect(() => decoder.push(stream(ROWS))).toThrow(refusal);
  expect(Buffer.from(decoder.failedField(0)!).toString()).toBe('2');
  expect(Buffer.from(decoder.failedField(1)!).toString()).toBe('');
});

/** A decoder whose rows are collected as text. */
function collect(
  columns: number,
  rowDone = () => false,
  check: (value: string) => void = () => {},
): { decoder: CopyBinaryDecoder; received: Row[] } {
  const received: Row[] = [];
  let current: Row = [];
  const decoder = new CopyBinaryDecoder({
    columns: Array.from({ length: columns }, (_, i) => ({
      name: `column${i}`,
      append(bytes: Uint8Array, start: number, length: number) {
        const value = Buffer.from(bytes.subarray(start, start + length)).toString();
        check(value);
        current[i] = value;
      },
      appendNull() {
        current[i] = null;
      },
    })),
    rowDone() {
      received.push(current);
      current = [];
      return rowDone();
    },
  });
  return { decoder, received };
}

function stream(rows: Row[]): Buffer {
  return Buffer.concat([HEADER, ...rows.map(row), TRAILER]);
}

function row(values: Row): Buffer {
  return Buffer.concat([Buffer.from([0, values.length]), ...values.map(field)]);
}

function field(value: string | null): Buffer {
  if (value === null) return int32(-1);
  const bytes = Buffer.from(value);
  return Buffer.concat([int32(bytes.length), bytes]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** Cuts into pieces of the given sizes, over and over; a size of 0 gives an empty chunk. */
function* chunksOf(bytes: Buffer, sizes: number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]! || (i % 2 === 0 ? 0 : 1);
    yield Buffer.from(bytes.subarray(at, at + size));
    at += size;
  }
}

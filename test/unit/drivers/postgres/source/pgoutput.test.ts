import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import {
  type PgMessage,
  PgoutputDecoder,
  type TupleView,
  VALUE,
} from '../../../../../drivers/postgres/source/pgoutput.ts';

const LSN = 0x16_b374_d848n;
/** 2024-05-06T07:08:09.123456Z, as the server counts and since 1970. */
const SERVER_MICROS = 768_294_489_123_456n;
const MICROS = 1_714_979_289_123_456;

const ROW = tuple('42', null, 'unchanged', '', 'é');
const VALUES = ['42', null, 'unchanged', '', 'é'];
const KEY = tuple('41', null, null, null, null);
const KEY_VALUES = ['41', null, null, null, null];

const FRAMES: Record<string, [frame: Buffer, message: unknown]> = {
  begin: [
    join('B', uint64(LSN), uint64(SERVER_MICROS), uint32(731)),
    { kind: 'begin', commitLsn: LSN, commitMicros: MICROS, xid: 731 },
  ],
  commit: [
    join('C', uint8(0), uint64(LSN), uint64(LSN + 8n), uint64(SERVER_MICROS)),
    { kind: 'commit', commitLsn: LSN, endLsn: LSN + 8n, commitMicros: MICROS },
  ],
  origin: [join('O', uint64(LSN), string('upstream')), { kind: 'origin', commitLsn: LSN, name: 'upstream' }],
  relation: [
    join(
      'R',
      uint32(4_000_000_000),
      string('shop'),
      string('orders é'),
      'd',
      uint16(2),
      ...[uint8(1), string('id'), uint32(20), uint32(0xffff_ffff)],
      ...[uint8(0), string('price'), uint32(1700), uint32(786_438)],
    ),
    {
      kind: 'relation',
      oid: 4_000_000_000,
      schema: 'shop',
      name: 'orders é',
      replicaIdentity: 'default',
      columns: [
        { key: true, name: 'id', typeOid: 20, typmod: -1 },
        { key: false, name: 'price', typeOid: 1700, typmod: 786_438 },
      ],
    },
  ],
  type: [
    join('Y', uint32(16_501), string('public'), string('mood')),
    { kind: 'type', oid: 16_501, schema: 'public', name: 'mood' },
  ],
  insert: [join('I', uint32(7), 'N', ROW), { kind: 'insert', relationOid: 7, after: VALUES }],
  'update without a before-image': [
    join('U', uint32(7), 'N', ROW),
    { kind: 'update', relationOid: 7, beforeImage: 'none', after: VALUES },
  ],
  'update of the key': [
    join('U', uint32(7), 'K', KEY, 'N', ROW),
    { kind: 'update', relationOid: 7, beforeImage: 'key', before: KEY_VALUES, after: VALUES },
  ],
  'update with the whole old row': [
    join('U', uint32(7), 'O', ROW, 'N', KEY),
    { kind: 'update', relationOid: 7, beforeImage: 'full', before: VALUES, after: KEY_VALUES },
  ],
  'delete by key': [
    join('D', uint32(7), 'K', KEY),
    { kind: 'delete', relationOid: 7, beforeImage: 'key', before: KEY_VALUES },
  ],
  'delete with the whole old row': [
    join('D', uint32(7), 'O', ROW),
    { kind: 'delete', relationOid: 7, beforeImage: 'full', before: VALUES },
  ],
  truncate: [
    join('T', uint32(2), uint8(3), uint32(7), uint32(8)),
    { kind: 'truncate', relationOids: [7, 8], cascade: true, restartIdentity: true },
  ],
  'logical message': [
    join('M', uint8(1), uint64(LSN), string('urutau'), uint32(3), Buffer.from('abc')),
    { kind: 'message', transactional: true, lsn: LSN, prefix: 'urutau', content: 'abc' },
  ],
  'logical message outside of a transaction': [
    join('M', uint8(0), uint64(LSN), string('urutau'), uint32(0)),
    { kind: 'message', transactional: false, lsn: LSN, prefix: 'urutau', content: '' },
  ],
};

test.each(Object.entries(FRAMES))('%s: the message is decoded from the middle of a buffer', (_, [frame, message]) => {
  const buffer = Buffer.concat([Buffer.from('xxx'), frame, Buffer.from('yyy')]);

  const decoded = new PgoutputDecoder().decode(buffer, 3, 3 + frame.length);

  expect(whole(buffer, decoded)).toEqual(message);
});

test.each(Object.entries(FRAMES))('%s: a frame cut at any byte is a protocol violation', (_, [frame]) => {
  const decoder = new PgoutputDecoder();

  for (let end = 0; end < frame.length; end++) {
    expect(() => decoder.decode(frame, 0, end), `cut at ${end}`).toThrow(UrutauError);
  }
});

test.each(Object.entries(FRAMES))('%s: a byte too many is a protocol violation', (_, [frame]) => {
  const longer = Buffer.concat([frame, Buffer.from([0])]);

  expect(() => new PgoutputDecoder().decode(longer, 0, longer.length)).toThrow('came 1 more');
});

test.each([
  ['an unknown message', join('S', uint32(1))],
  ['an insert without a new row', join('I', uint32(7), 'K', ROW)],
  ['an update whose second row is not the new one', join('U', uint32(7), 'K', KEY, 'O', ROW)],
  ['a delete with a new row', join('D', uint32(7), 'N', ROW)],
  ['an unknown tag of a value', join('I', uint32(7), 'N', uint16(1), 'x')],
  ['a value longer than the frame', join('I', uint32(7), 'N', uint16(1), 't', uint32(0xffff_ffff))],
  ['an unknown replica identity', join('R', uint32(7), string('s'), string('t'), 'q', uint16(0))],
  ['an unknown flag of a column', join('R', uint32(7), string('s'), string('t'), 'd', uint16(1), uint8(2))],
  ['a commit with flags', join('C', uint8(1), uint64(LSN), uint64(LSN), uint64(0n))],
  ['an unknown option of a truncate', join('T', uint32(0), uint8(4))],
  ['more truncated tables than the frame holds', join('T', uint32(0xffff_ffff), uint8(0), uint32(7))],
])('%s is a protocol violation', (_, frame) => {
  expect(() => new PgoutputDecoder().decode(frame, 0, frame.length)).toThrow(
    expect.objectContaining({ code: 'protocol-violation' }),
  );
});

test('binary values and rows of 1,600 columns are decoded', () => {
  const frame = join('I', uint32(7), 'N', uint16(1600), ...Array(1600).fill(join('b', uint32(1), uint8(9))));

  const message = new PgoutputDecoder().decode(frame, 0, frame.length) as PgMessage & { kind: 'insert' };

  expect(message.after.count).toBe(1600);
  expect(message.after.kinds[1599]).toBe(VALUE.binary);
  expect(frame[message.after.starts[1599]!]).toBe(9);
});

/** A message with its rows and views replaced by what they show. */
function whole(buffer: Buffer, message: PgMessage): unknown {
  const rows: Record<string, unknown> = {};
  if ('after' in message) rows['after'] = shown(buffer, message.after);
  if ('before' in message) rows['before'] = shown(buffer, message.before);
  if (message.kind === 'update' && message.beforeImage === 'none') delete rows['before'];
  if (message.kind === 'message') rows['content'] = Buffer.from(message.content).toString();
  const { before: _before, ...rest } = message as PgMessage & { before?: TupleView };
  return { ...rest, ...rows };
}

function shown(buffer: Buffer, { count, kinds, starts, lengths }: TupleView): (string | null)[] {
  return Array.from({ length: count }, (_, i) => {
    if (kinds[i] === VALUE.null) return null;
    if (kinds[i] === VALUE.unchanged) return 'unchanged';
    return buffer.toString('utf8', starts[i]!, starts[i]! + lengths[i]!);
  });
}

function tuple(...values: (string | null)[]): Buffer {
  return join(uint16(values.length), ...values.map(value));
}

function value(text: string | null): Buffer {
  if (text === null) return Buffer.from('n');
  if (text === 'unchanged') return Buffer.from('u');
  return join('t', uint32(Buffer.byteLength(text)), Buffer.from(text));
}

function join(...parts: (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

function uint8(value: number): Buffer {
  return Buffer.from([value]);
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 255]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

function string(text: string): Buffer {
  return join(text, uint8(0));
}

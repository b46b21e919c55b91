import { UrutauError } from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Lsn } from '../../../../drivers/postgres/lsn.ts';
import {
  afterTransaction,
  compareOffsets,
  decodeOffset,
  decodeOffsetBase64,
  encodeOffset,
  encodeOffsetBase64,
  OffsetWriter,
} from '../../../../drivers/postgres/offset.ts';

const uint64 = fc.bigInt(0n, 2n ** 64n - 1n);
const offsets = fc.record({ lsn: uint64.map((lsn) => lsn as Lsn), index: uint64 });

test('an offset is the commit position and the index in sixteen bytes', () => {
  const bytes = encodeOffset({ lsn: 0x16_b374_d848n as Lsn, index: 3n });

  expect(Buffer.from(bytes).toString('hex')).toBe('00000016b374d8480000000000000003');
});

test('any offset survives its bytes and its base64', () => {
  fc.assert(
    fc.property(offsets, (offset) => {
      expect(decodeOffset(encodeOffset(offset))).toEqual(offset);
      expect(decodeOffsetBase64(encodeOffsetBase64(offset))).toEqual(offset);
    }),
  );
});

test('the order of the bytes is the order in the log', () => {
  fc.assert(
    fc.property(offsets, offsets, fc.boolean(), (a, other, sameTransaction) => {
      const b = sameTransaction ? { ...other, lsn: a.lsn } : other;

      expect(compareOffsets(a, b)).toBe(Buffer.compare(encodeOffset(a), encodeOffset(b)));
    }),
  );
});

test('the place after a transaction is behind its last change and before the next transaction', () => {
  const last = { lsn: 7n as Lsn, index: 2n ** 64n - 1n };

  expect(compareOffsets(last, afterTransaction(7n as Lsn))).toBe(-1);
  expect(compareOffsets(afterTransaction(7n as Lsn), { lsn: 8n as Lsn, index: 1n })).toBe(-1);
});

test('the writer counts the changes of a transaction, also past 32 bits', () => {
  const writer = new OffsetWriter();

  writer.moveTo({ lsn: 5n as Lsn, index: 0n });
  expect(decodeOffset(writer.next())).toEqual({ lsn: 5n, index: 1n });
  expect(decodeOffset(writer.next())).toEqual({ lsn: 5n, index: 2n });
  writer.moveTo({ lsn: 6n as Lsn, index: 2n ** 32n - 1n });
  expect(decodeOffset(writer.next())).toEqual({ lsn: 6n, index: 2n ** 32n });
  expect(decodeOffset(writer.next())).toEqual({ lsn: 6n, index: 2n ** 32n + 1n });
});

test('bytes or text that this driver did not make are refused', () => {
  expect(() => decodeOffset(new Uint8Array(15))).toThrow(UrutauError);
  expect(() => decodeOffset(new Uint8Array(17))).toThrow(UrutauError);
  expect(() => decodeOffsetBase64('AAAA')).toThrow(UrutauError);
  expect(() => decodeOffsetBase64('not base64!')).toThrow(UrutauError);
});

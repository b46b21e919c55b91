import { UrutauError } from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatLsn, type Lsn, parseLsn } from '../../../../drivers/postgres/lsn.ts';

test('a WAL position is read from the text of the server', () => {
  expect(parseLsn('16/B374D848')).toBe(0x16_b374_d848n);
  expect(parseLsn('0/0')).toBe(0n);
  expect(parseLsn('FFFFFFFF/FFFFFFFF')).toBe(2n ** 64n - 1n);
});

test('any WAL position survives its text', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 64n - 1n), (lsn) => {
      expect(parseLsn(formatLsn(lsn as Lsn))).toBe(lsn);
    }),
  );
});

test.each(['', '16', '16/', '/1', '1/123456789', 'x/1', '1/2 '])('the text %j is no WAL position', (text) => {
  expect(() => parseLsn(text)).toThrow(UrutauError);
});

import { expect, test } from 'vitest';
import { forwardOnly } from '../../../../../host/pipeline/source/forward-only.ts';

const at = (...bytes: number[]) => Buffer.from(bytes).toString('base64');
const rows = (offset: string) => ({ rows: 3, offset });
const empty = (offset: string) => ({ rows: 0, offset });

test('offsets that are ordered by their bytes may go forward, from where the stream was opened', () => {
  const check = forwardOnly('orders', { from: at(1), offsetOrder: 'bytes' });

  for (const batch of [rows(at(1, 0)), rows(at(1, 7)), empty(at(1, 7)), rows(at(2)), { rows: 3 }, rows(at(0xff))]) {
    check(batch);
  }
});

test('rows that end before the batch before them are refused, with both offsets and the clause', () => {
  const check = forwardOnly('orders', { from: null, offsetOrder: 'bytes' });
  check(rows(at(2)));

  expect(() => check(rows(at(1, 9)))).toThrow(
    expect.objectContaining({
      code: 'protocol-violation',
      message: 'orders: expected changes after the offset Ag==; came a batch that ends at AQk= (INV-5)',
      context: expect.objectContaining({ table: 'orders' }),
    }),
  );
});

test('an empty batch that moves the position back is refused too', () => {
  const check = forwardOnly('orders', { from: at(2), offsetOrder: 'bytes' });

  expect(() => check(empty(at(1)))).toThrow('(INV-5)');
});

test('rows at the offset of the rows before them, or where the stream was opened, are refused in any order', () => {
  const opened = forwardOnly('orders', { from: at(5), offsetOrder: undefined });
  const later = forwardOnly('orders', { from: null, offsetOrder: undefined });
  later(rows(at(6)));

  expect(() => opened(rows(at(5)))).toThrow('(CHG-6)');
  expect(() => later(rows(at(6)))).toThrow('(CHG-6)');
});

test('opaque offsets may be in any order', () => {
  const check = forwardOnly('orders', { from: at(5), offsetOrder: undefined });

  for (const offset of [at(4), at(9), at(1)]) check(rows(offset));
});

test('the longest offset does not fill the sentence', () => {
  const check = forwardOnly('orders', { from: Buffer.alloc(8_192, 9).toString('base64'), offsetOrder: 'bytes' });

  const refused = () => check(rows(at(1)));

  expect(refused).toThrow(/^.{1,250}$/);
});

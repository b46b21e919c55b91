import { expect, test } from 'vitest';
import { columns } from '../../../../host/cli/columns.ts';

const terminal = { write: () => {}, isTerminal: false, columns: 80 };

test('without a terminal a table is plain aligned text, for other programs to read', () => {
  const text = columns(
    ['table', 'state'],
    [
      ['public.orders', 'streaming'],
      ['a', ''],
    ],
    terminal,
  );

  expect(text).toBe('table          state\npublic.orders  streaming\na\n');
});

test('a terminal gets rules around the cells', () => {
  expect(columns(['table'], [['public.orders']], { ...terminal, isTerminal: true })).toMatch(/│.*public\.orders.*│/);
});

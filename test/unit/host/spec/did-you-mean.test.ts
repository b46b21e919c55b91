import { expect, test } from 'vitest';
import { closest } from '../../../../host/spec/did-you-mean.ts';

const FIELDS = ['primaryKey', 'writeMode', 'onDelete', 'onTruncate', 'source', 'target'];

test('a slip of the keys or another way of joining words leads to the field', () => {
  for (const [word, field] of [
    ['primary_key', 'primaryKey'],
    ['primarykey', 'primaryKey'],
    ['wirteMode', 'writeMode'],
    ['on-delete', 'onDelete'],
    ['sorce', 'source'],
    ['traget', 'target'],
  ] as const) {
    expect([word, closest(word, FIELDS)]).toEqual([word, field]);
  }
});

test('a word that resembles nothing leads nowhere', () => {
  expect(['colour', 'x', ''].map((word) => closest(word, FIELDS))).toEqual([undefined, undefined, undefined]);
});

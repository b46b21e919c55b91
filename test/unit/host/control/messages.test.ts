import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseTablePath, TABLE_ACTIONS, tablePath } from '../../../../host/control/messages.ts';

test('any name of a table survives its path', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom(...TABLE_ACTIONS), (table, action) => {
      expect(parseTablePath(tablePath(table, action))).toEqual({ table, action });
    }),
  );
});

test.each([
  '/tables/a/erase',
  '/tables//pause',
  '/tables/a/b/pause',
  '/tables/%/pause',
  '/status',
  '/tables/a/pause?x',
])('the path %s names no action on a table', (path) => {
  expect(parseTablePath(path)).toBeNull();
});

import { expect, test } from 'vitest';
import { ReadView } from '../../../../../drivers/postgres/source/read-view.ts';

test('a snapshot in which a decoded transaction is still running does not show it', () => {
  const view = new ReadView();
  view.decoded(105);

  expect(view.shownBy('100:110:100,105')).toBe(false);
  expect(view.shownBy('100:105:')).toBe(false);
  expect(view.shownBy('100:110:100')).toBe(true);
});

test('what one snapshot has shown is not asked of later ones, and all that is left must be in the same', () => {
  const view = new ReadView();
  view.decoded(105);
  view.decoded(106);

  expect(view.shownBy('100:110:106')).toBe(false);
  expect(view.size).toBe(1);
  expect(view.shownBy('100:110:105')).toBe(true);
});

test('after a start everything that had begun must have ended', () => {
  const view = new ReadView();
  view.started('120');

  expect(view.shownBy('118:125:118')).toBe(false);
  expect(view.shownBy('119:119:')).toBe(false);
  expect(view.shownBy('120:125:')).toBe(true);
});

test.each([
  [0xffff_fff0, (7n << 32n) + 5n, true, 'before the wrap, seen from behind it'],
  [3, (7n << 32n) + 5n, true, 'behind the wrap'],
  [9, (7n << 32n) + 5n, false, 'not begun when the snapshot was taken'],
  [5, (7n << 32n) - 5n, false, 'behind the wrap, seen from before it'],
])('transaction %d in a snapshot up to %d: %s (%s)', (xid, xmax, shown) => {
  const view = new ReadView();
  view.decoded(xid);

  expect(view.shownBy(`${xmax}:${xmax}:`)).toBe(shown);
});

test('what is decoded while a snapshot is taken need not be in it', () => {
  const view = new ReadView();
  view.decoded(105);
  const { mark } = view;
  view.decoded(111);

  expect(view.shownBy('105:111:105', mark)).toBe(false);
  expect(view.shownBy('111:111:', mark)).toBe(true);
  expect(view.shownBy('111:111:')).toBe(false);
});

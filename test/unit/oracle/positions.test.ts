import { expect, test } from 'vitest';
import { type PositionSample, PositionWatch, STILL_MS_MAX } from '../../oracle/positions.ts';

const at = (table: PositionSample['table'], position: number | null, changes: number): PositionSample => ({
  table,
  position: position === null ? null : String(position),
  changes,
});

/** Minutes from the first sample on: positions and changes of accounts, then of items. */
function violationsOf(samples: [minutes: number, PositionSample, PositionSample][]): string[] {
  const watch = new PositionWatch((a, b) => Number(a) - Number(b));
  for (const [minutes, ...tables] of samples) watch.observe(minutes * 60_000, tables);
  return watch.violations;
}

test('positions that grow or stay are well, and a host that says nothing for a while is no step back', () => {
  expect(
    violationsOf([
      [0, at('accounts', 5, 1), at('items', null, 0)],
      [1, at('accounts', null, 2), at('items', 3, 1)],
      [2, at('accounts', 5, 2), at('items', 4, 2)],
      [3, at('accounts', 9, 3), at('items', 4, 2)],
    ]),
  ).toEqual([]);
});

test('a position that goes back is named, also when a host that was away comes back with it', () => {
  expect(
    violationsOf([
      [0, at('accounts', 5, 1), at('items', 1, 0)],
      [1, at('accounts', null, 1), at('items', 1, 0)],
      [2, at('accounts', 4, 1), at('items', 1, 0)],
    ]),
  ).toEqual(['the position of accounts went back from 5 to 4']);
});

const FIVE = STILL_MS_MAX / 60_000;

test('a table that stands still while its source changes and another moves is named once', () => {
  expect(
    violationsOf([
      [0, at('accounts', 5, 1), at('items', 1, 0)],
      [1, at('accounts', 5, 2), at('items', 2, 1)],
      [FIVE, at('accounts', 5, 3), at('items', 3, 2)],
      [FIVE + 1, at('accounts', 5, 3), at('items', 4, 3)],
      [FIVE + 2, at('accounts', 5, 3), at('items', 5, 4)],
    ]),
  ).toEqual([`accounts stood still for ${FIVE + 1} min while its source changed and items moved`]);
});

test.each<[string, number, number, number]>([
  ['nothing changes in it', 1, 1, 9],
  ['nothing else moves either', 1, 2, 1],
])('a table may stand still for long when %s', (_, before, changes, items) => {
  const samples = Array.from({ length: 12 }, (_, minute): [number, PositionSample, PositionSample] => [
    minute,
    at('accounts', 5, minute === 0 ? before : changes),
    at('items', items === 1 ? 1 : minute, minute),
  ]);

  expect(violationsOf(samples)).toEqual([]);
});

test('five minutes count from the first change that is not there yet, and not from the last move', () => {
  expect(
    violationsOf([
      [0, at('accounts', 5, 1), at('items', 1, 0)],
      [60, at('accounts', 5, 2), at('items', 2, 1)],
      [61, at('accounts', 5, 2), at('items', 3, 2)],
      [62, at('accounts', 6, 2), at('items', 4, 3)],
    ]),
  ).toEqual([]);
});

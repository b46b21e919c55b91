import { expect, test } from 'vitest';
import { RowTable } from '../../../../host/verify/row-table.ts';

test('a hundred thousand rows are found again with what was seen of them, and closed ones are not', () => {
  const rows = new RowTable();
  const keys = Array.from(
    { length: 100_000 },
    (_, n) => [Math.imul(n, 0x9e3779b1), Math.imul(n, 0x85ebca6b) | 0] as const,
  );
  for (const [n, [first, second]] of keys.entries()) {
    const slot = rows.put(first, second);
    rows.setSource(slot, { first: n, second: -n, version: n % 2 === 0 ? null : n });
  }
  for (const [first, second] of keys.slice(0, 50_000)) rows.close(rows.find(first, second));

  expect([rows.size, rows.open]).toEqual([100_000, 50_000]);
  expect([...rows.openSlots()]).toHaveLength(50_000);
  const wrong = keys.filter(([first, second], n) => {
    const slot = rows.find(first, second);
    if (n < 50_000) return rows.isOpen(slot);
    if (!rows.isOpen(slot)) return true;
    const source = rows.source(slot);
    const version = n % 2 === 0 ? null : n;
    return source?.first !== n || source.second !== -n || source.version !== version || rows.destination(slot) !== null;
  });
  expect(wrong).toEqual([]);
  expect(rows.find(1, 2)).toBe(-1);
});

test('a row is seen once in each read', () => {
  const rows = new RowTable();
  const slot = rows.put(1, 2);

  expect([rows.see(slot, 1), rows.see(slot, 1), rows.see(slot, 2), rows.seen(slot, 2), rows.seen(slot, 3)]).toEqual([
    true,
    false,
    true,
    true,
    false,
  ]);
});

import { expect, test } from 'vitest';
import type { Lsn } from '../../../../../drivers/postgres/lsn.ts';
import { Claims } from '../../../../../drivers/postgres/source/claims.ts';

const at = (lsn: bigint, index = 0n) => ({ lsn: lsn as Lsn, index });

test('the log is released up to the least of all assigned tables, and one that was never confirmed holds at its start', () => {
  const claims = new Claims();
  claims.assign('a', at(10n));
  claims.assign('b', at(10n));

  claims.confirm('a', at(50n, 3n));
  expect(claims.least).toBe(10n);

  claims.confirm('b', at(40n));
  expect(claims.least).toBe(40n);
});

test('an older offset and a table that is not assigned change nothing', () => {
  const claims = new Claims();
  claims.assign('a', at(10n));
  claims.confirm('a', at(20n));

  claims.confirm('a', at(15n));
  claims.confirm('x', at(5n));

  expect([claims.get('a'), claims.get('x'), claims.least]).toEqual([at(20n), null, 20n]);
});

test('a table that leaves the assignment gives up its claim', () => {
  const claims = new Claims();
  claims.assign('a', at(10n));
  claims.assign('b', at(20n));

  claims.retain(new Set(['b']));

  expect(claims.least).toBe(20n);
  claims.retain(new Set());
  expect(claims.least).toBeNull();
});

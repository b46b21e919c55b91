import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decodeRange,
  divide,
  encodeRange,
  firstChunk,
  type Leaf,
  type PageRange,
  storageOf,
} from '../../../../../drivers/postgres/source/page-range.ts';

const leaf = fc.record({
  oid: fc.nat(),
  fileNode: fc.nat(),
  pages: fc.nat(2000),
  rowsPerPage: fc.integer({ min: 1, max: 200 }),
});

test('the chunks of all ranges read every page of every leaf once, also pages that came after the plan', () => {
  fc.assert(
    fc.property(
      fc.array(leaf, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 100_000 }),
      fc.nat(300),
      (leaves, count, rows, growth) => {
        const grown = leaves.map((one) => ({ ...one, pages: one.pages + growth }));

        const read = divide(leaves, count).flatMap((range) => pagesOf(range, grown, rows));

        expect(read.sort()).toEqual(
          grown.flatMap(({ pages }, i) => Array.from({ length: pages }, (_, page) => `${i}:${page}`)).sort(),
        );
      },
    ),
    { numRuns: 50 },
  );
});

test('a plan stays below the limit of its tokens however many ranges are asked for', () => {
  const ranges = divide([{ oid: 4_000_000_000, fileNode: 4_000_000_000, pages: 2 ** 31, rowsPerPage: 1 }], 10_000);

  expect(ranges.map(encodeRange).join('').length).toBeLessThan(16_384);
});

test('a token comes back as the range that it was made of', () => {
  const range: PageRange = { storage: 'a1', from: { leaf: 0, page: 7 }, to: { leaf: 2, page: 0 } };

  expect(decodeRange(encodeRange(range))).toEqual(range);
  expect(decodeRange(encodeRange({ ...range, to: null }))).toEqual({ ...range, to: null });
});

test.each(['', 'AAAA', Buffer.from('[1,2,3]').toString('base64'), Buffer.from('["x",-1,0]').toString('base64')])(
  'the token %j is plan-lost',
  (token) => {
    expect(() => decodeRange(token)).toThrow(expect.objectContaining({ code: 'plan-lost' }));
  },
);

test('storage is another one after a rewrite or with another partition', () => {
  const one: Leaf = { oid: 1, fileNode: 10, pages: 1, rowsPerPage: 1 };
  const names = [[one], [{ ...one, fileNode: 11 }], [one, { ...one, oid: 2 }]].map(storageOf);

  expect(new Set(names).size).toBe(3);
  expect(storageOf([{ ...one, pages: 99 }])).toBe(names[0]);
});

function pagesOf(range: PageRange, leaves: readonly Leaf[], rows: number): string[] {
  const pages: string[] = [];
  for (let rest: PageRange | null = decodeRange(encodeRange(range)); rest; ) {
    const chunk = firstChunk(rest, leaves, rows);
    for (let page = chunk.fromPage; page < (chunk.toPage ?? leaves[chunk.leaf]!.pages); page++)
      pages.push(`${chunk.leaf}:${page}`);
    rest = chunk.rest;
  }
  return pages;
}

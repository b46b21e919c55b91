import { expect, test } from 'vitest';
import { CLASSES, compareRows, type RowImage } from '../../oracle/compare.ts';
import { Random, seeded } from '../../oracle/random.ts';
import { TABLES } from '../../oracle/tables.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const row = (code: bigint, rev = 10, image = 7): RowImage => ({ code, rev, image });
const THREE = [row(1n), row(2n), row(3n)];

test.each([
  ['equal rows have no difference', THREE, {}],
  ['a row that is not there is missing', [row(1n), row(3n)], { missing: 1 }],
  ['the last row that is not there is missing', [row(1n), row(2n)], { missing: 1 }],
  ['an empty table misses all', [], { missing: 3 }],
  ['a key that never was is extra', [...THREE, row(4n)], { extra: 1 }],
  ['a key that was deleted is resurrected', [row(0n), ...THREE], { resurrected: 1 }],
  ['an older revision is stale', [row(1n), row(2n, 9), row(3n)], { stale: 1 }],
  ['an older revision of the same content is stale', [row(1n), row(2n, 9, 7), row(3n)], { stale: 1 }],
  ['other content is incorrect', [row(1n), row(2n, 10, 8), row(3n)], { incorrect: 1 }],
  ['a revision that is yet to come is incorrect', [row(1n), row(2n, 11), row(3n)], { incorrect: 1 }],
  ['a key that is there twice is duplicated', [row(1n), row(2n), row(2n), row(3n)], { duplicated: 1 }],
  ['each further row of a key is duplicated', [row(1n), row(1n), row(1n), row(2n), row(3n)], { duplicated: 2 }],
  ['a second row is judged too', [row(1n), row(2n), row(2n, 9), row(3n)], { duplicated: 1, stale: 1 }],
  ['an extra key that is there twice is both', [...THREE, row(4n), row(4n)], { extra: 1, duplicated: 1 }],
  ['two differences side by side are two', [row(0n), row(2n, 9), row(3n)], { resurrected: 1, missing: 1, stale: 1 }],
])('%s', async (_, actual, counts) => {
  const found = await compared(THREE, actual);

  expect(found.counts).toEqual({ ...NONE, ...counts });
  expect(found.rows).toBe(3);
  expect(found.examples).toHaveLength(Object.values(counts).reduce((sum, count) => sum + count, 0));
});

test('an example says the key, what came and what was expected', async () => {
  const { examples } = await compared(THREE, [row(1n), row(2n, 4), row(4n, 5)]);

  expect(examples).toEqual(['stale 2, rev 4, expected 10', 'missing 3, expected rev 10', 'extra 4, rev 5']);
});

test('rows that come in another order are refused, for a merge would judge them wrongly', async () => {
  await expect(compared(THREE, [row(2n), row(1n)])).rejects.toThrow(
    'the actual rows are not in the order of their keys',
  );
  await expect(compared([row(2n), row(2n)], [])).rejects.toThrow('expected 2 once');
});

test(`random damage is counted as by looking each key up (seed ${SEED})`, async () => {
  const random = new Random(seeded(SEED));
  for (let round = 0; round < 200; round++) {
    const keys = Array.from({ length: 40 }, (_, n) => BigInt(n));
    const expected = keys.filter(() => random.chance(0.6)).map((code) => row(code));
    const actual = keys.flatMap((code) => {
      const copies = random.chance(0.6) ? (random.chance(0.1) ? 2 : 1) : 0;
      return Array.from({ length: copies }, () => row(code, 9 + random.below(3), 6 + random.below(2)));
    });

    const { counts } = await compared(expected, actual);

    expect(counts, `round ${round}`).toEqual(countedByLookup(expected, actual));
  }
});

test('keys keep their order through text and back, and no two of a table are equal', () => {
  for (const table of Object.values(TABLES)) {
    const codes = Array.from({ length: 2_000 }, (_, n) => table.freshKey(n)).sort(table.compare);
    for (const [index, code] of codes.entries()) {
      expect(table.codeOf(table.partsOf(code))).toBe(code);
      if (index > 0) expect(table.compare(codes[index - 1]!, code), String(code)).toBeLessThan(0);
    }
  }
});

const NONE = Object.fromEntries(CLASSES.map((kind) => [kind, 0]));

/** Keys up to 0, and those that 7 divides, were deleted. */
const wasDeleted = (code: unknown) => Number(code) % 7 === 0;

function compared(expected: RowImage[], actual: RowImage[]) {
  return compareRows({ expected, actual, compare: TABLES.accounts.compare, wasDeleted, name: String });
}

function countedByLookup(expected: RowImage[], actual: RowImage[]) {
  const counts = { ...NONE } as Record<string, number>;
  const add = (kind: string, count = 1) => {
    counts[kind] = counts[kind]! + count;
  };
  const wanted = new Map(expected.map((one) => [one.code, one]));
  const there = new Map<unknown, RowImage[]>();
  for (const one of actual) there.set(one.code, [...(there.get(one.code) ?? []), one]);
  for (const { code } of expected) if (!there.has(code)) add('missing');
  for (const [code, rows] of there) {
    add('duplicated', rows.length - 1);
    const want = wanted.get(code as bigint);
    if (!want) add(wasDeleted(code) ? 'resurrected' : 'extra');
    else
      for (const { rev, image } of rows) {
        if (rev < want.rev) add('stale');
        else if (rev > want.rev || image !== want.image) add('incorrect');
      }
  }
  return counts;
}

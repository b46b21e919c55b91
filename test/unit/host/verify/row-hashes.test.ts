import { asIpcStream, encodeSchemaHeader } from '@urutau/contract';
import { builderFor, encodeColumns } from '@urutau/sdk';
import { type RecordBatch, Schema, tableFromIPC } from 'apache-arrow';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BucketSums } from '../../../../host/verify/bucket-sums.ts';
import type { ColumnPair } from '../../../../host/verify/column-pairs.ts';
import { hashColumns, hashRows } from '../../../../host/verify/row-hashes.ts';
import { randomRows, SAMPLES, sampleFields, type Value } from '../../sdk/typescript/columns/random-columns.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

const PAIRS: ColumnPair[] = sampleFields().map(({ name }, place) => {
  return { name, form: 'as-is', key: place === 1, source: place, destination: place };
});

function batchOf(rows: readonly Value[][]): RecordBatch {
  const fields = sampleFields();
  const builders = fields.map(builderFor);
  for (const row of rows) {
    for (const [place, value] of row.entries()) {
      if (value === null) builders[place]!.appendNull();
      else SAMPLES[place]!.append(builders[place]!, value as never);
    }
  }
  const { header, body } = encodeColumns(
    builders.map((builder) => builder.finish()),
    rows.length,
  );
  return tableFromIPC(asIpcStream(encodeSchemaHeader(new Schema(fields)), header, Buffer.concat([body].flat())))
    .batches[0]!;
}

function sumsOf(...batches: RecordBatch[]): BucketSums {
  const sums = new BucketSums();
  for (const batch of batches) sums.add(hashRows(batch, PAIRS, 'source'));
  return sums;
}

test('the sums of a table depend neither on the order of its rows nor on how they lie in batches', () => {
  fc.assert(
    fc.property(randomRows(40), fc.nat(), (rows, at) => {
      fc.pre(rows.length > 1);
      const cut = 1 + (at % (rows.length - 1));
      const other = [...rows.slice(cut), ...rows.slice(0, cut)].reverse();
      const whole = sumsOf(batchOf(rows));

      expect(whole.differing(sumsOf(batchOf(other.slice(0, cut)), batchOf(other.slice(cut))))).toEqual([]);
    }),
    { seed, numRuns: 25 },
  );
});

test('a difference in any one cell shows in the bucket of its key, and in the hash of its column alone', () => {
  const place = fc.nat(SAMPLES.length - 1);
  fc.assert(
    fc.property(randomRows(20), randomRows(1), fc.nat(), place, (rows, [other], at, column) => {
      fc.pre(rows.length > 0 && other !== undefined);
      const row = at % rows.length;
      const [was, is] = [rows[row]![column]!, other![column]!];
      fc.pre(!Object.is(was, is) && String(was) !== String(is));
      const changed = rows.map((cells, n) => (n === row ? cells.with(column, is) : cells));
      const [before, after] = [batchOf(rows), batchOf(changed)];

      // A row with another key is one that is missing and one that is extra.
      const buckets = sumsOf(before).differing(sumsOf(after)).length;
      expect(buckets).toBeGreaterThanOrEqual(1);
      expect(buckets).toBeLessThanOrEqual(PAIRS[column]!.key ? 2 : 1);

      const [old, now] = [before, after].map((batch) => hashColumns(batch, row, PAIRS, 'source'));
      const differing = PAIRS.map((_, n) => n).filter(
        (n) => old![2 * n] !== now![2 * n] || old![2 * n + 1] !== now![2 * n + 1],
      );
      expect(differing).toEqual([column]);
    }),
    { seed, numRuns: 150 },
  );
});

test('a lost row and a row that is there twice show in the bucket of their key', () => {
  fc.assert(
    fc.property(randomRows(20), fc.nat(), (rows, at) => {
      fc.pre(rows.length > 1);
      const row = at % rows.length;
      const whole = sumsOf(batchOf(rows));

      expect(whole.differing(sumsOf(batchOf(rows.toSpliced(row, 1))))).toHaveLength(1);
      expect(whole.differing(sumsOf(batchOf([...rows, rows[row]!])))).toHaveLength(1);
    }),
    { seed, numRuns: 25 },
  );
});

test('all NaN are one value, and 0 is not -0', () => {
  const at = SAMPLES.findIndex(({ kind }) => kind === 'float64');
  const batch = (value: number) => batchOf([SAMPLES.map((_, place) => (place === at ? value : null))]);

  expect(sumsOf(batch(Number.NaN)).differing(sumsOf(batch(Number.NaN)))).toEqual([]);
  expect(sumsOf(batch(0)).differing(sumsOf(batch(-0)))).toHaveLength(1);
});

import { METADATA, UrutauError } from '@urutau/contract';
import type { RecordBatch, Schema } from 'apache-arrow';
import type { RowPicture } from '../flight/read-rows.ts';
import { BUCKETS, BucketSums } from './bucket-sums.ts';
import { type ColumnPair, pairColumns } from './column-pairs.ts';
import { DIFFERENCES, type Difference } from './judge.ts';
import { type FoundRow, lookAgain } from './look-again.ts';
import { hashRows, type Side } from './row-hashes.ts';

export interface ComparedTable {
  readonly source: string;
  readonly target: string;
  /** Undefined: the source's own. */
  readonly primaryKey?: readonly string[];
}

/** Both sides of one table, while both live. */
export interface TableSides {
  /** Takes a picture of the table; `versions` asks for the version of each row (SCH-10). */
  read(side: Side, options: { versions: boolean }): Promise<RowPicture>;
  /** Resolves when the destination shows everything up to the source's offset; throws when that cannot be awaited. */
  passed(offset: string): Promise<void>;
  /** What has been done, for a person who waits. */
  progress(text: string): void;
}

export interface CompareOptions {
  /** Rows that are kept at once in a second look. */
  readonly rowsMax: number;
  /** How often a row is looked at before it counts as unsettled. */
  readonly looksMax: number;
  /** Differing rows that are named; when so many are known, the buckets that are left are not looked into. */
  readonly namedMax: number;
}

export interface TableComparison {
  readonly rows: Readonly<Record<Side, number>>;
  readonly counts: Readonly<Record<Difference | 'unsettled', number>>;
  /** At most `namedMax`. */
  readonly found: readonly FoundRow[];
  /** Key buckets that differ and were not looked into, because enough differences were known; null when there are none. */
  readonly left: { readonly buckets: number; readonly rows: Readonly<Record<Side, number>> } | null;
}

/**
 * Compares a table of the source with its target. Both are read whole and folded into sums of key buckets; only the rows of buckets
 * that differ are looked at one by one, again and again until it is certain what they are.
 */
export async function compareTable(
  table: ComparedTable,
  sides: TableSides,
  { rowsMax, looksMax, namedMax }: CompareOptions,
): Promise<TableComparison> {
  const [source, destination] = await bothOf((side) => sides.read(side, { versions: false }));
  const pairs = pairColumns(source.schema, destination.schema, keyOf(table, source.schema), table);
  const [ofSource, ofDestination] = await bothOf((side) =>
    folded(side === 'source' ? source : destination, pairs, side),
  );
  const counts = { missing: 0, extra: 0, different: 0, duplicated: 0, unsettled: 0 };
  const found: FoundRow[] = [];
  const schemas = { source: source.schema, destination: destination.schema };
  const look = { table: table.source, sides, pairs, schemas, looksMax };
  let left = ofSource.differing(ofDestination);
  if (left.length > 0) {
    const places = `${left.length.toLocaleString('en-US')} of ${BUCKETS.toLocaleString('en-US')} key buckets`;
    sides.progress(`${places} differ at first sight; their rows are looked at again`);
  }
  while (left.length > 0 && found.length < namedMax) {
    const buckets = firstBuckets(left, rowsMax, ofSource, ofDestination);
    const looked = await lookAgain({ ...look, buckets, namedMax: namedMax - found.length });
    for (const kind of [...DIFFERENCES, 'unsettled'] as const) counts[kind] += looked.counts[kind];
    found.push(...looked.found);
    left = left.slice(buckets.length);
  }
  return {
    rows: { source: ofSource.rows, destination: ofDestination.rows },
    counts,
    found,
    left:
      left.length === 0
        ? null
        : {
            buckets: left.length,
            rows: { source: rowsIn(left, ofSource), destination: rowsIn(left, ofDestination) },
          },
  };
}

/** In the order that the pipeline file or the source gives. Throws when there is none. */
function keyOf({ source, primaryKey }: ComparedTable, schema: Schema): readonly string[] {
  const own = schema.metadata.get(METADATA.primaryKey);
  const key = primaryKey ?? (own === undefined ? [] : (JSON.parse(own) as string[]));
  if (key.length > 0) return key;
  throw new UrutauError('precondition-failed', `${source} has no key by which its rows could be compared`, {
    table: source,
    remedy: 'Name the key with `primaryKey` in the pipeline file.',
  });
}

async function folded(picture: RowPicture, pairs: readonly ColumnPair[], side: Side): Promise<BucketSums> {
  const sums = new BucketSums();
  for await (const batch of picture.batches() as AsyncGenerator<RecordBatch>) sums.add(hashRows(batch, pairs, side));
  return sums;
}

/** As many as have no more than so many rows on the side that has more; at least one. */
function firstBuckets(left: readonly number[], rowsMax: number, ...sums: readonly BucketSums[]): number[] {
  let rows = 0;
  const end = left.findIndex((bucket, place) => {
    rows += Math.max(...sums.map(({ counts }) => counts[bucket]!));
    return rows > rowsMax && place > 0;
  });
  return end === -1 ? [...left] : left.slice(0, end);
}

function rowsIn(buckets: readonly number[], { counts }: BucketSums): number {
  return buckets.reduce((sum, bucket) => sum + counts[bucket]!, 0);
}

function bothOf<T>(work: (side: Side) => Promise<T>): Promise<[T, T]> {
  return Promise.all([work('source'), work('destination')]);
}

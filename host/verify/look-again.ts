import { METADATA, UrutauError } from '@urutau/contract';
import type { RecordBatch, Schema } from 'apache-arrow';
import type { RowPicture } from '../flight/read-rows.ts';
import { BUCKETS, bucketOf } from './bucket-sums.ts';
import type { ColumnPair } from './column-pairs.ts';
import type { TableSides } from './compare-table.ts';
import { type Difference, type Image, judgeByDestination, judgeBySource, sameImage, type Verdict } from './judge.ts';
import { keyText } from './key-text.ts';
import { hashColumns, hashRows, hashVersions, type Side } from './row-hashes.ts';
import { RowTable } from './row-table.ts';

/** A row that differs for certain. */
export interface FoundRow {
  readonly kind: Difference;
  /** Column and value, as in `id=7`. */
  readonly key: string;
  /** Of `different`: the columns whose values are not the same. */
  readonly columns: readonly string[];
}

export interface LookOptions {
  readonly table: string;
  readonly sides: TableSides;
  readonly pairs: readonly ColumnPair[];
  /** Those that `pairs` was made from. */
  readonly schemas: Readonly<Record<Side, Schema>>;
  /** Only their rows are looked at. */
  readonly buckets: readonly number[];
  readonly looksMax: number;
  readonly namedMax: number;
}

export interface Looked {
  readonly counts: Record<Difference | 'unsettled', number>;
  readonly found: readonly FoundRow[];
}

/** Reads both sides in turn until it is certain of each row in the buckets what it is, or it was looked at often enough. */
export async function lookAgain(options: LookOptions): Promise<Looked> {
  const { sides, looksMax } = options;
  const rows = new UncertainRows(options);
  for (let look = 1; look <= looksMax; look++) {
    const source = await sides.read('source', { versions: true });
    await rows.see('source', source);
    if (rows.settled) break;
    await sides.passed(source.endOffset);
    await rows.see('destination', await sides.read('destination', { versions: true }));
    if (rows.settled) break;
    sides.progress(`look ${look} of ${looksMax}: ${rows.open.toLocaleString('en-US')} rows are not certain yet`);
  }
  return rows.result();
}

/** What tells a row to a person, of its last read on one side. */
interface Description {
  readonly key: string;
  /** By `hashColumns`. */
  readonly columns: Int32Array;
}

/** The rows of some buckets, each with what its last reads showed, until it is certain what it is. */
class UncertainRows {
  readonly #options: LookOptions;
  readonly #inBuckets = new Uint8Array(BUCKETS);
  readonly #rows = new RowTable();
  readonly #described: Readonly<Record<Side, Map<string, Description>>> = { source: new Map(), destination: new Map() };
  readonly #counts = { missing: 0, extra: 0, different: 0, duplicated: 0 };
  readonly #found: FoundRow[] = [];
  #reads = 0;

  constructor(options: LookOptions) {
    this.#options = options;
    for (const bucket of options.buckets) this.#inBuckets[bucket] = 1;
  }

  get open(): number {
    return this.#rows.open;
  }

  /** Both sides were read, and nothing is uncertain. */
  get settled(): boolean {
    return this.#reads > 1 && this.#rows.open === 0;
  }

  result(): Looked {
    return { counts: { ...this.#counts, unsettled: this.#rows.open }, found: this.#found };
  }

  /** Takes in one read of one side; source and destination come in turn. */
  async see(side: Side, picture: RowPicture): Promise<void> {
    const { table, schemas, pairs } = this.#options;
    const versionPlace = this.#keepsVersions(side) ? versionPlaceOf(picture.schema) : -1;
    if (rowsSchema(picture.schema) !== rowsSchema(schemas[side])) throw columnsChanged(table, side);
    const read = ++this.#reads;
    for await (const batch of picture.batches()) {
      const { key, row } = hashRows(batch, pairs, side);
      const versions = versionPlace === -1 ? null : hashVersions(batch, versionPlace);
      for (let at = 0; at < batch.numRows; at++) {
        const [first, second] = [key.first[at]!, key.second[at]!];
        if (this.#inBuckets[bucketOf(first)] === 0) continue;
        const slot = this.#slotFor(first, second, read);
        if (slot === -1) continue;
        if (!this.#rows.see(slot, read)) {
          // The key is the source's: there nothing can be compared by it, and in the destination it is a difference.
          if (side === 'source') throw keyNotUnique(table, keyText(batch, at, pairs, side));
          this.#takeTwice(slot, () => this.#describe(side, batch, at));
          continue;
        }
        if (!this.#rows.isOpen(slot)) continue;
        const image = { first: row.first[at]!, second: row.second[at]!, version: versions?.[at] ?? null };
        this.#take(side, slot, read, image, () => this.#describe(side, batch, at));
      }
    }
    for (const slot of this.#rows.openSlots()) {
      if (!this.#rows.seen(slot, read)) this.#take(side, slot, read, null, () => null);
    }
  }

  /** Where a row is its key alone, a sink may leave one that is there as it is, so that its version says nothing. */
  #keepsVersions(side: Side): boolean {
    return side === 'source' || this.#options.pairs.some(({ key }) => !key);
  }

  /** Only the first read of each side brings rows in: a row that appears later was written after all of this began. */
  #slotFor(first: number, second: number, read: number): number {
    const slot = this.#rows.find(first, second);
    return slot === -1 && read <= 2 ? this.#rows.put(first, second) : slot;
  }

  #take(side: Side, slot: number, read: number, image: Image, describe: () => Description | null): void {
    const verdict = this.#verdict(side, slot, read, image);
    if (verdict === 'look-again') {
      if (side === 'source') this.#rows.setSource(slot, image);
      else this.#rows.setDestination(slot, image);
      // Of the first read of the source nothing tells yet which rows are worth it.
      if (read > 1) this.#remember(side, slot, describe());
      return;
    }
    if (verdict !== 'equal') this.#report(verdict, side, slot, describe);
    this.#close(slot);
  }

  /** One read of the destination showed two rows of one key, which is certain at once, whatever becomes of the source. */
  #takeTwice(slot: number, describe: () => Description): void {
    if (this.#rows.isOpen(slot)) this.#close(slot);
    if (this.#rows.duplicate(slot)) this.#report('duplicated', 'destination', slot, describe);
  }

  #verdict(side: Side, slot: number, read: number, image: Image): Verdict {
    const source = this.#rows.source(slot);
    const destination = this.#rows.destination(slot);
    if (read === 1) return 'look-again';
    if (read === 2) return sameImage(source, image) ? 'equal' : 'look-again';
    return side === 'source'
      ? judgeBySource(source, destination, image)
      : judgeByDestination(destination, source, image);
  }

  #report(kind: Difference, side: Side, slot: number, describe: () => Description | null): void {
    this.#counts[kind]++;
    if (this.#found.length >= this.#options.namedMax) return;
    const name = this.#rows.name(slot);
    const here = describe();
    const there = this.#described[side === 'source' ? 'destination' : 'source'].get(name) ?? null;
    const known = here ?? there ?? this.#described[side].get(name);
    // One that was not remembered, because there were too many, is counted and not named.
    if (known === undefined) return;
    const columns = kind === 'different' && here && there ? this.#differing(here, there) : [];
    this.#found.push({ kind, key: known.key, columns });
  }

  #differing(a: Description, b: Description): string[] {
    const differs = (word: number) => a.columns[word] !== b.columns[word];
    return this.#options.pairs
      .filter((_, place) => differs(2 * place) || differs(2 * place + 1))
      .map(({ name }) => name);
  }

  #describe(side: Side, batch: RecordBatch, at: number): Description {
    const { pairs } = this.#options;
    return { key: keyText(batch, at, pairs, side), columns: hashColumns(batch, at, pairs, side) };
  }

  #remember(side: Side, slot: number, description: Description | null): void {
    const described = this.#described[side];
    const name = this.#rows.name(slot);
    if (description === null) described.delete(name);
    else if (described.size < this.#options.namedMax || described.has(name)) described.set(name, description);
  }

  #close(slot: number): void {
    const name = this.#rows.name(slot);
    this.#described.source.delete(name);
    this.#described.destination.delete(name);
    this.#rows.close(slot);
  }
}

/** -1 where the driver names no versions. */
function versionPlaceOf({ fields }: Schema): number {
  return fields.findIndex(({ metadata }) => metadata.has(METADATA.rowVersion));
}

/** The columns without that of the versions. */
function rowsSchema({ fields }: Schema): string {
  return fields
    .filter(({ metadata }) => !metadata.has(METADATA.rowVersion))
    .map(String)
    .join();
}

function columnsChanged(table: string, side: Side): UrutauError {
  return new UrutauError('schema-changed', `the columns of ${table} changed at the ${side} while it was compared`, {
    table,
    remedy: 'Run `urutau-host verify` again.',
  });
}

function keyNotUnique(table: string, key: string): UrutauError {
  return new UrutauError('precondition-failed', `two rows of ${table} have the same key at the source: ${key}`, {
    table,
    remedy: 'Name a key in `primaryKey` that is unique at the source.',
  });
}

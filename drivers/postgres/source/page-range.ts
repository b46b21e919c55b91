import { createHash } from 'node:crypto';
import { UrutauError } from '@urutau/sdk';

/** A table's storage: itself, or the leaves of a partitioned one, in the order of their oids. */
export interface Leaf {
  oid: number;
  /** pg_relation_filenode: another one after a rewrite. */
  fileNode: number;
  pages: number;
  /** For the size of a chunk; a guess where the planner knows nothing. */
  rowsPerPage: number;
}

export interface PagePosition {
  leaf: number;
  page: number;
}

/** From a page of a leaf to before another; open at its end where `to` is null. */
export interface PageRange {
  storage: string;
  from: PagePosition;
  to: PagePosition | null;
}

/** What one chunk reads: pages of one leaf, with no upper bound where `toPage` is null, and what is left afterwards. */
export interface Chunk {
  leaf: number;
  fromPage: number;
  toPage: number | null;
  rest: PageRange | null;
}

/** Names the storage: token and table must mean the same files, or rows would be missed after a rewrite. */
export function storageOf(leaves: readonly Leaf[]): string {
  const files = leaves.map(({ oid, fileNode }) => `${oid}:${fileNode}`).join();
  return createHash('sha256').update(files).digest('hex').slice(0, 16);
}

/** Divides the pages evenly into at most `count` ranges that are worth a chunk of their own. */
export function divide(leaves: readonly Leaf[], count: number): PageRange[] {
  const storage = storageOf(leaves);
  const pages = leaves.reduce((sum, leaf) => sum + leaf.pages, 0);
  const ranges = Math.max(1, Math.min(count, RANGES_MAX, Math.floor(pages / RANGE_PAGES_MIN)));
  // The first begins at the first page, also of a leaf that has none yet.
  const bounds = Array.from({ length: ranges }, (_, i) =>
    i === 0 ? { leaf: 0, page: 0 } : positionOf(leaves, Math.floor((pages * i) / ranges)),
  );
  return bounds.map((from, i) => ({ storage, from, to: bounds[i + 1] ?? null }));
}

/** The first pages of a range, about `rows` rows of them. */
export function firstChunk({ storage, from, to }: PageRange, leaves: readonly Leaf[], rows: number): Chunk {
  const { pages, rowsPerPage } = leaves[from.leaf]!;
  const end = from.page + Math.max(1, Math.round(rows / rowsPerPage));
  if (to?.leaf === from.leaf) {
    const toPage = Math.min(end, to.page);
    const rest = toPage < to.page ? { storage, from: { leaf: from.leaf, page: toPage }, to } : null;
    return { leaf: from.leaf, fromPage: from.page, toPage, rest };
  }
  if (end < pages) {
    return {
      leaf: from.leaf,
      fromPage: from.page,
      toPage: end,
      rest: { storage, from: { leaf: from.leaf, page: end }, to },
    };
  }
  // Without an upper bound: pages that were added after the plan are read too.
  return {
    leaf: from.leaf,
    fromPage: from.page,
    toPage: null,
    rest: nextLeaf(storage, from.leaf + 1, to, leaves.length),
  };
}

export function encodeRange({ storage, from, to }: PageRange): string {
  const fields = [storage, from.leaf, from.page, ...(to ? [to.leaf, to.page] : [])];
  return Buffer.from(JSON.stringify(fields)).toString('base64');
}

/** Throws `plan-lost` for a token of another driver or version. */
export function decodeRange(token: string): PageRange {
  try {
    const [storage, leaf, page, toLeaf, toPage, ...more] = JSON.parse(Buffer.from(token, 'base64').toString());
    const numbers = [leaf, page, ...(toLeaf === undefined ? [] : [toLeaf, toPage])];
    if (typeof storage === 'string' && more.length === 0 && numbers.every((n) => Number.isSafeInteger(n) && n >= 0)) {
      return { storage, from: { leaf, page }, to: toLeaf === undefined ? null : { leaf: toLeaf, page: toPage } };
    }
  } catch {
    // Falls through to the one message for all that is not a token.
  }
  throw new UrutauError('plan-lost', 'expected a range token of this driver; came something else');
}

const RANGES_MAX = 64;
const RANGE_PAGES_MIN = 128;

function positionOf(leaves: readonly Leaf[], page: number): PagePosition {
  let rest = page;
  for (const [leaf, { pages }] of leaves.entries()) {
    if (rest < pages) return { leaf, page: rest };
    rest -= pages;
  }
  return { leaf: 0, page: 0 };
}

function nextLeaf(storage: string, leaf: number, to: PagePosition | null, leafCount: number): PageRange | null {
  const past = to === null ? leaf >= leafCount : leaf > to.leaf || (leaf === to.leaf && to.page === 0);
  return past ? null : { storage, from: { leaf, page: 0 }, to };
}

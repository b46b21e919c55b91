import { createHash } from 'node:crypto';

export const TABLE_NAMES = ['accounts', 'items', 'events'] as const;
export type TableName = (typeof TABLE_NAMES)[number];

/** `instant`: whole microseconds since 1970. `payload`: a text of any length, which is compared by its fingerprint. */
export type ColumnKind = 'integer' | 'text' | 'decimal' | 'instant' | 'boolean' | 'float' | 'payload';

export interface Column {
  name: string;
  kind: ColumnKind;
}

/** A row's key as one value, in whose order the tables are read; a key of two columns is one number. */
export type Code = bigint | string;

export interface OracleTable {
  name: TableName;
  key: readonly Column[];
  /** The first is `rev`, which grows with every change of any row; `payload`, where there is one, is the last. */
  columns: readonly Column[];
  hasPayload: boolean;
  /** The n-th key that was never used before. */
  freshKey(n: number): Code;
  /** The key's columns, as the texts that a server prints. */
  partsOf(code: Code): string[];
  codeOf(parts: readonly string[]): Code;
  compare(a: Code, b: Code): number;
}

export const HALF_OF_64_BITS = 2n ** 63n;
/** `seq` has the lower bits of an event's key. */
const SEQ_BITS = 40n;
const SHARDS = 16n;
/** Each sorts at another place in a language's order than in that of bytes; the last needs two units of UTF-16. */
const SKU_PREFIXES = ['a', 'A', 'ä', 'Z', 'ß', '_', '-', ' ', 'é', 'Ø', 'å', '10', '9', "'", '"\\', 'ﬁ', '🙂'];

export const TABLES: Record<TableName, OracleTable> = {
  accounts: {
    name: 'accounts',
    key: [{ name: 'id', kind: 'decimal' }],
    columns: [
      { name: 'rev', kind: 'integer' },
      { name: 'owner', kind: 'text' },
      { name: 'balance', kind: 'decimal' },
      { name: 'opened', kind: 'instant' },
      { name: 'active', kind: 'boolean' },
      { name: 'score', kind: 'float' },
    ],
    hasPayload: false,
    // Away from 2^63 to both sides, in runs, so that each of several writers has both; the greatest of 64 bits comes once.
    freshKey(n) {
      if (n === 1) return 2n ** 64n - 1n;
      return Math.floor(n / 16) % 2 === 0 ? HALF_OF_64_BITS - 1n - BigInt(n) : HALF_OF_64_BITS + BigInt(n);
    },
    partsOf: (code) => [String(code)],
    codeOf: ([id]) => BigInt(id!),
    compare: compareBigints,
  },
  items: {
    name: 'items',
    key: [{ name: 'sku', kind: 'text' }],
    columns: [
      { name: 'rev', kind: 'integer' },
      { name: 'title', kind: 'text' },
      { name: 'quantity', kind: 'integer' },
      { name: 'price', kind: 'decimal' },
    ],
    hasPayload: false,
    freshKey: (n) => `${SKU_PREFIXES[n % SKU_PREFIXES.length]}${n.toString(36)}`,
    partsOf: (code) => [String(code)],
    codeOf: ([sku]) => sku!,
    compare: compareByBytes,
  },
  events: {
    name: 'events',
    key: [
      { name: 'shard', kind: 'integer' },
      { name: 'seq', kind: 'integer' },
    ],
    columns: [
      { name: 'rev', kind: 'integer' },
      { name: 'kind', kind: 'text' },
      { name: 'at', kind: 'instant' },
      { name: 'payload', kind: 'payload' },
    ],
    hasPayload: true,
    freshKey: (n) => ((BigInt(n) % SHARDS) << SEQ_BITS) | BigInt(n),
    partsOf: (code) => [String(BigInt(code) >> SEQ_BITS), String(BigInt(code) & ((1n << SEQ_BITS) - 1n))],
    codeOf: ([shard, seq]) => (BigInt(shard!) << SEQ_BITS) | BigInt(seq!),
    compare: compareBigints,
  },
};

/** What all columns but the payload hold in a row's revision, as the texts that a server prints; the first is `rev`. */
export function valuesAt(table: TableName, rev: number): (string | null)[] {
  const instant = String(1_767_225_600_000_000n + BigInt(rev) * 1_000_123n);
  const cents = String(rev % 100).padStart(2, '0');
  switch (table) {
    case 'accounts':
      return [
        String(rev),
        rev % 7 === 0 ? null : `owner ${rev}`,
        `${rev % 2 === 0 ? '' : '-'}${1 + ((rev * 7919) % 1_000_000_007)}.00${cents}`,
        instant,
        rev % 11 === 0 ? null : String(rev % 3 === 0),
        String((rev % 1000) / 8),
      ];
    case 'items':
      return [
        String(rev),
        rev % 5 === 0 ? '' : `Größe "${rev}", \\ 寸`,
        String(rev % 1000),
        `${rev % 99_991}.${cents}`,
      ];
    case 'events':
      return [String(rev), `kind ${rev % 9}`, instant];
  }
}

/** 52 bits of the payload's MD5: what can be kept of millions of payloads. */
export function fingerprintOf(text: string): number {
  return Number.parseInt(createHash('md5').update(text).digest('hex').slice(0, FINGERPRINT_DIGITS), 16);
}

export const FINGERPRINT_DIGITS = 13;

/**
 * Fingerprint of a row's columns beside its key: `LENGTH:TEXT` in bytes of each, `~` for NULL, of a payload its own
 * fingerprint. A server computes the same from what it stores.
 */
export function imageOf(table: TableName, rev: number, payload: number | null): number {
  const values = valuesAt(table, rev);
  if (TABLES[table].hasPayload) {
    values.push(payload === null ? null : payload.toString(16).padStart(FINGERPRINT_DIGITS, '0'));
  }
  return fingerprintOf(
    values.map((value) => (value === null ? '~' : `${Buffer.byteLength(value)}:${value}`)).join(','),
  );
}

function compareBigints(a: Code, b: Code): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The order of UTF-8, in which characters beyond 16 bits come last. */
function compareByBytes(a: Code, b: Code): number {
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

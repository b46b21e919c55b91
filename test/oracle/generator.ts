import { createHash } from 'node:crypto';
import { Book, type LiveRow, type Payload } from './book.ts';
import { Random, seeded } from './random.ts';
import { type Code, fingerprintOf, HALF_OF_64_BITS, TABLE_NAMES, TABLES, type TableName } from './tables.ts';
import type { InsertedRow, Statement, Transaction } from './transaction.ts';

export interface WorkloadShape {
  /** Rows of each of the three tables before the first change. */
  rows: number;
  /** Rows of the largest transaction. */
  transactionRowsMax: number;
  payloadBytesMax: number;
}

export interface GeneratorOptions extends WorkloadShape {
  seed: number;
  /** This writer's number, of so many: each has keys of its own, so that writers never wait for each other. */
  lane: number;
  lanes: number;
}

type Operation = 'insert' | 'update' | 'delete' | 'change-key' | 'reuse-key' | 'leave-payload' | 'null-payload';

/** A case that is played once soon after the start, whatever the dice say: a short run has all of them, too. */
type Wish =
  | { kind: 'operation'; table: TableName; operation: Operation; above?: boolean }
  | { kind: 'single' | 'rollback' | 'savepoint' | 'maximal' };

interface Mood {
  /** Of inserts, updates and deletes. */
  weights: readonly [number, number, number];
  left: number;
}

const WEIGHTS = [45, 35, 20] as const;
const MOOD_TRANSACTIONS = 40;
const ROWS_MEAN = 4;
const SEED_BATCH_ROWS = 1_000;
const PAYLOAD_BYTES_MIN = 16;
/** What surely is kept out of line. */
export const LARGE_PAYLOAD_BYTES = 4_000;
/** Above so many rows most of them begin with a small payload, or the first copy is all that a run does. */
const RICH_ROWS_MAX = 10_000;

/**
 * One writer's transactions: a pure function of the seed and of which transactions were committed. After `next` comes
 * `commit` or `undo`.
 */
export class Generator {
  readonly book = new Book();
  readonly #options: GeneratorOptions;
  readonly #random: Random;
  readonly #wishes: Wish[];
  readonly #keys: Record<TableName, number> = { accounts: 0, items: 0, events: 0 };
  #revs = 0;
  #mood: Mood = { weights: WEIGHTS, left: MOOD_TRANSACTIONS };

  constructor(options: GeneratorOptions) {
    this.#options = options;
    this.#random = new Random(seeded(options.seed * 31 + options.lane));
    this.#wishes = options.lane === 0 ? wishes(this.#random) : [];
  }

  /** The rows that are there from the beginning; each is to be committed. */
  *seed(): Iterable<Transaction> {
    const { rows, lanes, lane, payloadBytesMax } = this.#options;
    const own = Math.floor(rows / lanes) + (lane < rows % lanes ? 1 : 0);
    for (const table of TABLE_NAMES) {
      for (let at = 0; at < own; at += SEED_BATCH_ROWS) {
        const batch = Array.from({ length: Math.min(SEED_BATCH_ROWS, own - at) }, () => {
          const rich = rows <= RICH_ROWS_MAX || this.#random.chance(0.01);
          return this.#newRow(table, rich ? payloadBytesMax : Math.min(payloadBytesMax, 1024));
        });
        yield { statements: [{ kind: 'insert', table, rows: batch }], rows: batch.length, end: 'commit' };
      }
    }
  }

  /** The next transaction, on one table alone where that is asked for. */
  next(only: TableName | null = null): Transaction {
    const wish = only === null ? this.#wishes.pop() : undefined;
    this.#changeMood();
    const rows = this.#size(wish);
    const statements: Statement[] = [];
    const savepoint = this.#savepoint(rows, wish);
    let table = only ?? this.#table();
    let mark: number | null = null;
    for (let row = 0; row < rows; ) {
      if (savepoint !== null && mark === null && row >= savepoint.from) {
        statements.push({ kind: 'savepoint' });
        mark = this.book.mark();
      }
      if (row === 0 && wish?.kind === 'operation') row += this.#perform(statements, wish.table, wish.operation, wish);
      else {
        if (only === null && this.#random.chance(0.3)) table = this.#table();
        row += this.#perform(statements, table, this.#operation(table));
      }
      if (savepoint !== null && mark !== null && (row >= savepoint.to || row >= rows)) {
        statements.push({ kind: savepoint.undone ? 'undo-to-savepoint' : 'release-savepoint' });
        if (savepoint.undone) this.book.undo(mark);
        savepoint.from = Number.POSITIVE_INFINITY;
        mark = null;
      }
    }
    const end = wish?.kind === 'rollback' || (wish === undefined && this.#random.chance(0.05)) ? 'rollback' : 'commit';
    return { statements, rows: countRows(statements), end };
  }

  /** One new row in each table: whoever has seen them has seen everything before. */
  closing(): Transaction {
    const statements = TABLE_NAMES.map((table): Statement => ({ kind: 'insert', table, rows: [this.#newRow(table)] }));
    return { statements, rows: statements.length, end: 'commit' };
  }

  #changeMood(): void {
    if (this.#mood.left-- > 0) return;
    const [insert, update, remove] = WEIGHTS.map((weight) => weight * this.#random.logNormal(0.5));
    this.#mood = { weights: [insert!, update!, remove!], left: this.#random.exponential(MOOD_TRANSACTIONS) };
  }

  #size(wish: Wish | undefined): number {
    const { transactionRowsMax } = this.#options;
    if (wish?.kind === 'maximal') return transactionRowsMax;
    if (wish?.kind === 'single') return 1;
    if (this.#random.chance(0.01)) {
      return Math.ceil(transactionRowsMax * Math.min(1, this.#random.between(0.25, 1.25)));
    }
    const rows = Math.min(transactionRowsMax, 1 + Math.floor(this.#random.exponential(ROWS_MEAN - 1)));
    return wish?.kind === 'savepoint' ? Math.max(4, rows) : rows;
  }

  #savepoint(rows: number, wish: Wish | undefined): { from: number; to: number; undone: boolean } | null {
    if (wish?.kind !== 'savepoint' && (wish !== undefined || rows < 3 || !this.#random.chance(0.1))) return null;
    const from = this.#random.below(rows - 1);
    const to = from + 1 + this.#random.below(rows - from);
    return { from, to, undone: wish !== undefined || this.#random.chance(0.5) };
  }

  #table(): TableName {
    return TABLE_NAMES[this.#random.below(TABLE_NAMES.length)]!;
  }

  #operation(table: TableName): Operation {
    const [insert, update, remove] = this.#mood.weights;
    const { live } = this.book.pages[table];
    const share = (live.length * this.#options.lanes) / this.#options.rows;
    const pull = share < 0.5 ? 4 : share > 2 ? 0.25 : 1;
    switch (this.#random.weighted([insert * pull, update, remove / pull])) {
      case 0:
        return this.#random.chance(0.05) ? 'reuse-key' : 'insert';
      case 1:
        return this.#random.chance(0.06) ? 'change-key' : 'update';
      default:
        return 'delete';
    }
  }

  /** Answers how many rows it has written. */
  #perform(statements: Statement[], table: TableName, asked: Operation, { above }: { above?: boolean } = {}): number {
    const pages = this.book.pages[table];
    const operation = pages.live.length === 0 ? 'insert' : asked;
    switch (operation) {
      case 'insert':
        addInsert(statements, table, this.#newRow(table));
        return 1;
      case 'reuse-key': {
        const freed = pages.dead.length === 0 ? this.#perform(statements, table, 'delete') : 0;
        const code = this.book.revive(table, this.#random.below(pages.dead.length));
        addInsert(statements, table, this.#newRow(table, this.#options.payloadBytesMax, code));
        return freed + 1;
      }
      case 'delete':
        statements.push({ kind: 'delete', table, code: this.book.delete(table, this.#pick(pages.live, above)).code });
        return 1;
      default:
        statements.push(this.#update(table, operation, above));
        return 1;
    }
  }

  #update(
    table: TableName,
    operation: 'update' | 'change-key' | 'leave-payload' | 'null-payload',
    above?: boolean,
  ): Statement {
    const { live, dead } = this.book.pages[table];
    const index = operation === 'leave-payload' ? this.#pickLarge(live) : this.#pick(live, above);
    const { code, payload: before } = live[index]!;
    const rev = this.#rev();
    let to = code;
    if (operation === 'change-key') {
      const reused = dead.length > 0 && this.#random.chance(0.25);
      to = reused ? this.book.revive(table, this.#random.below(dead.length)) : this.#freshKey(table);
    }
    const text = TABLES[table].hasPayload ? this.#changedPayload(rev, operation) : undefined;
    const payload = text === undefined ? before : payloadOf(text);
    this.book.update(table, index, { code: to, rev, payload });
    return {
      kind: 'update',
      table,
      code,
      to,
      rev,
      payload: text,
      keptBytes: text === undefined ? (before?.bytes ?? 0) : 0,
    };
  }

  /** Half of all updates leave it alone. */
  #changedPayload(rev: number, operation: Operation): string | null | undefined {
    if (operation === 'leave-payload') return undefined;
    if (operation === 'null-payload') return null;
    if (this.#random.chance(0.5)) return undefined;
    return this.#random.chance(0.2) ? null : this.#payload(rev, this.#options.payloadBytesMax);
  }

  #pick(live: readonly LiveRow[], above?: boolean): number {
    let index = this.#random.below(live.length);
    for (let tries = 0; above !== undefined && tries < 100; tries++) {
      if (BigInt(live[index]!.code) >= HALF_OF_64_BITS === above) break;
      index = this.#random.below(live.length);
    }
    return index;
  }

  #pickLarge(live: readonly LiveRow[]): number {
    const from = this.#random.below(live.length);
    const found = live.findIndex(({ payload }, index) => index >= from && isLarge(payload));
    return found >= 0
      ? found
      : Math.max(
          0,
          live.findIndex(({ payload }) => isLarge(payload)),
        );
  }

  #newRow(table: TableName, payloadBytesMax = this.#options.payloadBytesMax, reused?: Code): InsertedRow {
    const code = reused ?? this.#freshKey(table);
    const rev = this.#rev();
    const filled = TABLES[table].hasPayload && this.#random.chance(0.7);
    const payload = filled ? this.#payload(rev, payloadBytesMax) : null;
    this.book.insert(table, { code, rev, payload: payloadOf(payload) });
    return { code, rev, payload, reused: reused !== undefined };
  }

  #payload(rev: number, bytesMax: number): string {
    return payloadText(`${this.#options.seed}/${rev}`, this.#random.logUniform(PAYLOAD_BYTES_MIN, bytesMax));
  }

  /** Numbers of one writer are those that leave its own number when divided. */
  #freshKey(table: TableName): Code {
    const { lane, lanes } = this.#options;
    return TABLES[table].freshKey(this.#keys[table]++ * lanes + lane);
  }

  #rev(): number {
    const { lane, lanes } = this.#options;
    return ++this.#revs * lanes + lane;
  }
}

/** The large transaction comes last: with a low rate it takes seconds. */
function wishes(random: Random): Wish[] {
  const operations = TABLE_NAMES.flatMap((table) =>
    (['insert', 'update', 'delete', 'change-key', 'reuse-key'] as const).map(
      (operation): Wish => ({ kind: 'operation', table, operation }),
    ),
  );
  const sides = (['update', 'delete'] as const).flatMap((operation) =>
    [true, false].map((above): Wish => ({ kind: 'operation', table: 'accounts', operation, above })),
  );
  const payloads = (['leave-payload', 'null-payload'] as const).map(
    (operation): Wish => ({ kind: 'operation', table: 'events', operation }),
  );
  const shapes: Wish[] = [{ kind: 'single' }, { kind: 'rollback' }, { kind: 'savepoint' }];
  return [{ kind: 'maximal' }, ...random.shuffled([...operations, ...sides, ...payloads, ...shapes])];
}

function addInsert(statements: Statement[], table: TableName, row: InsertedRow): void {
  const last = statements.at(-1);
  if (last?.kind === 'insert' && last.table === table) last.rows.push(row);
  else statements.push({ kind: 'insert', table, rows: [row] });
}

function payloadOf(text: string | null): Payload | null {
  return text === null ? null : { fingerprint: fingerprintOf(text), bytes: text.length };
}

function isLarge(payload: Payload | null): boolean {
  return payload !== null && payload.bytes >= LARGE_PAYLOAD_BYTES;
}

/** Letters and digits that no server can compress well. */
function payloadText(recipe: string, bytes: number): string {
  const hash = createHash('shake256', { outputLength: Math.ceil((bytes * 3) / 4) });
  return hash.update(recipe).digest('base64url').slice(0, bytes);
}

function countRows(statements: readonly Statement[]): number {
  let rows = 0;
  for (const statement of statements) {
    if (statement.kind === 'insert') rows += statement.rows.length;
    else if (statement.kind === 'update' || statement.kind === 'delete') rows += 1;
  }
  return rows;
}

import { expect, test, vi } from 'vitest';
import { Coverage, casesOf, OPERATION_CASES } from '../../oracle/coverage.ts';
import { Generator, type GeneratorOptions } from '../../oracle/generator.ts';
import { Random, seeded } from '../../oracle/random.ts';
import { type Code, TABLE_NAMES, TABLES, type TableName } from '../../oracle/tables.ts';
import { lastingStatements, type Transaction } from '../../oracle/transaction.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
vi.setConfig({ testTimeout: 60_000 });

const OPTIONS: GeneratorOptions = {
  seed: SEED,
  lane: 0,
  lanes: 2,
  rows: 200,
  transactionRowsMax: 60,
  payloadBytesMax: 20_000,
};

test(`the same seed and the same fates of its transactions give the same statements (seed ${SEED})`, () => {
  const one = played(new Generator(OPTIONS), 300, SEED);
  const other = played(new Generator(OPTIONS), 300, SEED);

  expect(other).toEqual(one);
  expect(played(new Generator({ ...OPTIONS, seed: SEED + 1 }), 300, SEED)).not.toEqual(one);
});

test(`a transaction that was undone leaves the rows, the dead keys and their order as they were (seed ${SEED})`, () => {
  const generator = filled();
  for (let i = 0; i < 500; i++) {
    const before = structuredClone(generator.book.pages);
    generator.next();
    generator.book.undo();
    expect(generator.book.pages, `transaction ${i}`).toEqual(before);
    generator.next();
    generator.book.commit();
  }
});

test(`what the book holds is what the statements make of empty tables, savepoints included (seed ${SEED})`, () => {
  const generator = new Generator(OPTIONS);
  const tables = { accounts: new Map(), items: new Map(), events: new Map() };
  for (const transaction of generator.seed()) {
    applyTo(tables, transaction);
    generator.book.commit();
  }
  const fates = new Random(seeded(SEED + 2));
  for (let i = 0; i < 1_000; i++) {
    const transaction = generator.next(fates.chance(0.1) ? 'events' : null);
    if (transaction.end === 'rollback' || fates.chance(0.1)) generator.book.undo();
    else {
      applyTo(tables, transaction);
      generator.book.commit();
    }
  }

  for (const table of TABLE_NAMES) {
    const { live, dead } = generator.book.pages[table];
    expect(new Map(live.map(({ code, rev }) => [code, rev]))).toEqual(tables[table]);
    expect(live.length, table).toBeGreaterThan(0);
    expect(dead.filter((code) => tables[table].has(code))).toEqual([]);
    expect(new Set(dead).size).toBe(dead.length);
  }
});

test(`sixty transactions hit every operation, and the first of them all the wishes (seed ${SEED})`, () => {
  const generator = filled();
  const coverage = new Coverage();
  for (let i = 0; i < 60; i++) {
    const transaction = generator.next();
    const committed = transaction.end === 'commit';
    coverage.hit(...casesOf(transaction, { committed, rowsMax: OPTIONS.transactionRowsMax }));
    if (committed) generator.book.commit();
    else generator.book.undo();
  }

  expect(coverage.missing(OPERATION_CASES)).toEqual([]);
});

test(`two writers never have a key or a revision in common (seed ${SEED})`, () => {
  const [first, second] = [0, 1].map((lane) => used(new Generator({ ...OPTIONS, lane })));

  expect(first!.filter((what) => new Set(second).has(what))).toEqual([]);
});

test(`the number of rows stays between a quarter and four times that of the beginning (seed ${SEED})`, () => {
  const generator = filled({ lanes: 1 });
  for (let i = 0; i < 5_000; i++) {
    const { end } = generator.next(i % 10 < 3 ? 'events' : null);
    if (end === 'commit') generator.book.commit();
    else generator.book.undo();
    for (const table of TABLE_NAMES) {
      const live = generator.book.pages[table].live.length;
      expect(live >= OPTIONS.rows / 4 && live <= OPTIONS.rows * 4, `${live} rows of ${table}`).toBe(true);
    }
  }
});

test(`payloads, sizes and ends have the shares that were asked for (seed ${SEED})`, () => {
  const generator = filled();
  const transactions = Array.from({ length: 4_000 }, () => {
    const transaction = generator.next();
    if (transaction.end === 'commit') generator.book.commit();
    else generator.book.undo();
    return transaction;
  });
  const inserts = transactions.flatMap(({ statements }) =>
    statements.flatMap((one) => (one.kind === 'insert' ? one.rows : [])),
  );
  const sizes = inserts.flatMap(({ payload }) => (payload === null ? [] : [payload.length]));
  const share = (part: number, whole: number) => part / whole;

  expect(Math.min(...sizes)).toBeGreaterThanOrEqual(16);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(OPTIONS.payloadBytesMax);
  // Log-uniform: half of them are below the geometric mean of the two ends.
  const below = sizes.filter((size) => size < Math.sqrt(16 * OPTIONS.payloadBytesMax)).length;
  expect(share(below, sizes.length)).toBeCloseTo(0.5, 1);
  expect(share(inserts.filter(({ reused }) => reused).length, inserts.length)).toBeCloseTo(0.05, 1);
  expect(share(transactions.filter(({ end }) => end === 'rollback').length, transactions.length)).toBeCloseTo(0.05, 1);
  expect(Math.max(...transactions.map(({ rows }) => rows))).toBeGreaterThanOrEqual(OPTIONS.transactionRowsMax);
});

function filled(more: Partial<GeneratorOptions> = {}): Generator {
  const generator = new Generator({ ...OPTIONS, ...more });
  for (const _ of generator.seed()) generator.book.commit();
  return generator;
}

/** Every fourth transaction fails for a reason of the server's. */
function played(generator: Generator, count: number, seed: number): Transaction[] {
  const fates = new Random(seeded(seed));
  const all = [...generator.seed()];
  generator.book.commit();
  for (let i = 0; i < count; i++) {
    const transaction = generator.next();
    all.push(transaction);
    if (transaction.end === 'commit' && !fates.chance(0.25)) generator.book.commit();
    else generator.book.undo();
  }
  return all;
}

/** By the meaning of SQL, and nothing of the book. */
function applyTo(tables: Record<TableName, Map<Code, number>>, transaction: Transaction): void {
  for (const statement of lastingStatements(transaction)) {
    if (!('table' in statement)) continue;
    const rows = tables[statement.table];
    const refuse = (code: Code, expected: boolean) => {
      if (rows.has(code) !== expected) throw new Error(`${statement.kind} of ${String(code)}`);
    };
    if (statement.kind === 'insert') {
      for (const { code, rev } of statement.rows) {
        refuse(code, false);
        rows.set(code, rev);
      }
    } else {
      refuse(statement.code, true);
      rows.delete(statement.code);
      if (statement.kind === 'update') {
        refuse(statement.to, false);
        rows.set(statement.to, statement.rev);
      }
    }
  }
}

function used(generator: Generator): string[] {
  const transactions = played(generator, 500, SEED);
  return transactions.flatMap(({ statements }) =>
    statements.flatMap((statement): string[] => {
      if (statement.kind === 'insert') {
        return statement.rows.flatMap(({ code, rev }) => [keyText(statement.table, code), `rev ${rev}`]);
      }
      return statement.kind === 'update' ? [keyText(statement.table, statement.to), `rev ${statement.rev}`] : [];
    }),
  );
}

function keyText(table: TableName, code: Code): string {
  return `${table} ${TABLES[table].partsOf(code).join('/')}`;
}

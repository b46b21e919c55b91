import { type EncodedBatch, UrutauError } from '@urutau/sdk';
import pg from 'pg';
import { quoteIdent, quoteName } from '../connection.ts';
import { Assembler, type Fill, keyText, missingColumns } from './assemble.ts';
import type { Query } from './catalog.ts';
import { PgoutputDecoder, type TupleView, type UpdateMessage, VALUE } from './pgoutput.ts';
import type { ReadView } from './read-view.ts';
import type { RowShape } from './row-shape.ts';

/** A change kept as the bytes that the server sent, because values of it, or of one before it, must be looked up. */
export interface KeptChange {
  frame: Uint8Array;
  offset: Uint8Array;
  micros: number;
}

export interface LookUp {
  table: string;
  query: Query;
  readView: ReadView;
  sleep(ms: number): Promise<void>;
}

/**
 * Looks up the TOASTed values that the server did not send, by key, and builds batches. The rows are read in a snapshot
 * that shows every transaction decoded so far, so a value is never older than its change; it may be newer, and then the
 * change that made it follows in the stream. `count` is how many of `changes` have gone into the batches so far.
 */
export async function* assembleWithLookUps(
  changes: readonly KeptChange[],
  rowShape: RowShape,
  lookUp: LookUp,
): AsyncGenerator<{ batch: EncodedBatch; count: number }, void> {
  const decoder = new PgoutputDecoder();
  const assembler = new Assembler(rowShape);
  for (let from = 0; from < changes.length; from += ROWS_PER_LOOK_UP) {
    const group = changes.slice(from, from + ROWS_PER_LOOK_UP);
    const found = await lookUpGroup(group, rowShape, decoder, lookUp);
    for (const [i, change] of group.entries()) {
      append(assembler, decoder, change, found);
      // What is looked up can be much larger than what the server sent.
      if (assembler.byteLength >= BATCH_BYTES) yield { batch: assembler.finish(), count: from + i + 1 };
    }
  }
  if (assembler.rows > 0) yield { batch: assembler.finish(), count: changes.length };
}

const ROWS_PER_LOOK_UP = 256;
const BATCH_BYTES = 1 << 20;

type Found = (frame: Uint8Array, message: UpdateMessage) => Fill;

function lookUpGroup(
  group: readonly KeptChange[],
  rowShape: RowShape,
  decoder: PgoutputDecoder,
  lookUp: LookUp,
): Promise<Found> {
  const wanted = new Wanted(rowShape);
  for (const { frame } of group) {
    const message = decoder.decode(frame, 0, frame.length);
    if (message.kind === 'update') wanted.add(frame, message);
  }
  return wanted.read(lookUp);
}

function append(
  assembler: Assembler,
  decoder: PgoutputDecoder,
  { frame, offset, micros }: KeptChange,
  found: Found,
): void {
  const message = decoder.decode(frame, 0, frame.length);
  switch (message.kind) {
    case 'insert':
      assembler.insert(frame, message.after, offset, micros);
      return;
    case 'update': {
      const fill = missingColumns(message).length > 0 ? found(frame, message) : null;
      assembler.update(frame, message, fill, offset, micros);
      return;
    }
    case 'delete':
      assembler.delete(frame, message, offset, micros);
      return;
    default:
      throw new UrutauError('internal', `a ${message.kind} message was kept as a change of a row`);
  }
}

/** Keys and columns to look up, each key once. */
class Wanted {
  readonly #rowShape: RowShape;
  readonly #keys = new Map<string, string[]>();
  readonly #columns = new Set<number>();

  constructor(rowShape: RowShape) {
    this.#rowShape = rowShape;
  }

  add(frame: Uint8Array, message: UpdateMessage): void {
    const missing = missingColumns(message);
    if (missing.length === 0) return;
    for (const column of missing) this.#columns.add(column);
    const key = this.#keyOf(frame, message);
    this.#keys.set(JSON.stringify(key), key);
  }

  async read({ table, query, readView, sleep }: LookUp): Promise<Found> {
    const columns = [...this.#columns];
    const keys = [...this.#keys.values()];
    const rows = keys.length > 0 ? await readRows(query, readView, sleep, this.#sql(table, keys, columns)) : [];
    const fills = new Map<string, Fill>();
    for (const [, ordinal, found, ...values] of rows) {
      const fill = new Map(columns.map((column, i) => [column, bytesOf(values[i]!)]));
      fills.set(JSON.stringify(keys[Number(ordinal) - 1]), found === null ? 'gone' : fill);
    }
    return (frame, message) => fills.get(JSON.stringify(this.#keyOf(frame, message)))!;
  }

  /** One row for each key, also for those that are gone; each row names the statement's snapshot. */
  #sql(table: string, keys: readonly string[][], columns: readonly number[]): string {
    const { keyIndexes, columns: all } = this.#rowShape;
    const arrays = keyIndexes.map(
      (index, k) => `${arrayLiteral(keys.map((key) => key[k]!))}::${all[index]!.formatted}[]`,
    );
    const names = keyIndexes.map((_, k) => `k${k}`);
    const matches = keyIndexes.map((index, k) => `t.${quoteIdent(all[index]!.column)} = k.k${k}`);
    const values = columns.map((index) => `t.${quoteIdent(all[index]!.column)}`);
    return `
      SELECT pg_current_snapshot()::text, k.n, t.tableoid, ${values.join(', ')}
      FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS k(${names.join(', ')}, n)
      LEFT JOIN ${quoteName(table)} t ON ${matches.join(' AND ')}`;
  }

  #keyOf(frame: Uint8Array, { beforeImage, before, after }: UpdateMessage): string[] {
    return this.#rowShape.keyIndexes.map((i) => {
      // A key that is itself TOASTed and unchanged stands in the old key.
      const sent = after.kinds[i] === VALUE.unchanged && beforeImage !== 'none' ? before : after;
      if (sent.kinds[i] !== VALUE.text) throw keyMissing(this.#rowShape, frame, after);
      return Buffer.from(frame.buffer, frame.byteOffset + sent.starts[i]!, sent.lengths[i]!).toString();
    });
  }
}

async function readRows(
  query: Query,
  readView: ReadView,
  sleep: (ms: number) => Promise<void>,
  sql: string,
): Promise<(string | null)[][]> {
  for (let delayMs = 2; ; delayMs = Math.min(2 * delayMs, 100)) {
    const rows = await query(sql);
    if (rows.length === 0 || readView.shownBy(rows[0]![0]!)) return rows;
    await sleep(delayMs);
  }
}

function arrayLiteral(values: readonly string[]): string {
  return pg.escapeLiteral(`{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`);
}

function bytesOf(value: string | null): Uint8Array | null {
  return value === null ? null : Buffer.from(value);
}

function keyMissing(rowShape: RowShape, frame: Uint8Array, after: TupleView): UrutauError {
  return new UrutauError(
    'protocol-violation',
    'pgoutput: expected the whole key of an updated row; a part of it was not sent',
    {
      key: keyText(rowShape, frame, after),
    },
  );
}

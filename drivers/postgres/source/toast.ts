import { type EncodedBatch, UrutauError } from '@urutau/sdk';
import pg from 'pg';
import { quoteIdent, quoteName } from '../connection.ts';
import { Assembler, type Fill, keyText, missingColumns } from './assemble.ts';
import type { Query } from './catalog.ts';
import { type InsertMessage, PgoutputDecoder, type TupleView, type UpdateMessage, VALUE } from './pgoutput.ts';
import type { ReadView } from './read-view.ts';
import { CHANGE_BYTES_MAX, largeChange, withPlace } from './refused-value.ts';
import type { RowShape } from './row-shape.ts';

/** A change kept as the bytes that the server sent, because values of it, or of one before it, must be looked up. */
export interface KeptChange {
  frame: Uint8Array;
  offset: Uint8Array;
  micros: number;
}

export interface LookUp {
  table: string;
  oid: number;
  /** An ordinary table's children are not part of it; a partitioned one's are. */
  partitioned: boolean;
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
  let rows = ROWS_FIRST;
  for (let from = 0; from < changes.length; ) {
    const group = changes.slice(from, from + rows);
    const found = await lookUpGroup(group, rowShape, decoder, lookUp);
    let looked = 0;
    for (const [i, change] of group.entries()) {
      const [fill, bytes] = fillOf(change, decoder, found);
      looked += bytes;
      // What is looked up can be much larger than what the server sent.
      if (assembler.rows > 0 && assembler.byteLength + bytes > BATCH_BYTES) {
        yield { batch: assembler.finish(), count: from + i };
      }
      append(assembler, decoder, change, fill, bytes, rowShape, lookUp.table);
    }
    from += group.length;
    rows = Math.max(1, Math.min(ROWS_MAX, 4 * rows, Math.floor((LOOK_UP_BYTES * group.length) / Math.max(1, looked))));
  }
  if (assembler.rows > 0) yield { batch: assembler.finish(), count: changes.length };
}

/** Changes of one look-up: few at first, because nothing tells how large its values are. */
const ROWS_FIRST = 16;
const ROWS_MAX = 256;
/** About so much of values is in memory at once. */
const LOOK_UP_BYTES = 8 << 20;
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

/** What was found for a change, and the bytes of the change with it. */
function fillOf({ frame }: KeptChange, decoder: PgoutputDecoder, found: Found): [Fill | null, bytes: number] {
  const message = decoder.decode(frame, 0, frame.length);
  if (message.kind !== 'update') return [null, frame.length];
  const missing = missingColumns(message);
  if (missing.length === 0) return [null, frame.length];
  const fill = found(frame, message);
  if (fill === 'gone') return [fill, frame.length];
  return [fill, missing.reduce((bytes, column) => bytes + (fill.get(column)?.length ?? 0), frame.length)];
}

function append(
  assembler: Assembler,
  decoder: PgoutputDecoder,
  { frame, offset, micros }: KeptChange,
  fill: Fill | null,
  bytes: number,
  rowShape: RowShape,
  table: string,
): void {
  const message = decoder.decode(frame, 0, frame.length);
  try {
    if (bytes > CHANGE_BYTES_MAX) throw largeChange(bytes);
    switch (message.kind) {
      case 'insert':
        assembler.insert(frame, message.after, offset, micros);
        return;
      case 'update':
        assembler.update(frame, message, fill, offset, micros);
        return;
      case 'delete':
        assembler.delete(frame, message, offset, micros);
        return;
      default:
        throw new UrutauError('internal', `a ${message.kind} message was kept as a change of a row`);
    }
  } catch (error) {
    const image = message.kind === 'delete' ? message.before : (message as InsertMessage | UpdateMessage).after;
    throw withPlace(error, table, keyText(rowShape, frame, image));
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

  async read(lookUp: LookUp): Promise<Found> {
    const columns = [...this.#columns];
    const keys = [...this.#keys.values()];
    const rows = keys.length > 0 ? await readRows(lookUp, this.#sql(lookUp, keys, columns)) : [];
    const fills = new Map<string, Fill>();
    for (const [, , ordinal, found, ...values] of rows) {
      const fill = new Map(columns.map((column, i) => [column, bytesOf(values[i]!)]));
      fills.set(JSON.stringify(keys[Number(ordinal) - 1]), found === null ? 'gone' : fill);
    }
    return (frame, message) => fills.get(JSON.stringify(this.#keyOf(frame, message)))!;
  }

  /** One row for each key, also for those that are gone; each row names the statement's snapshot and the table. */
  #sql({ table, partitioned }: LookUp, keys: readonly string[][], columns: readonly number[]): string {
    const { keyIndexes, columns: all } = this.#rowShape;
    const arrays = keyIndexes.map(
      (index, k) => `${arrayLiteral(keys.map((key) => key[k]!))}::${all[index]!.formatted}[]`,
    );
    const names = keyIndexes.map((_, k) => `k${k}`);
    const matches = keyIndexes.map((index, k) => `t.${quoteIdent(all[index]!.column)} = k.k${k}`);
    const values = columns.map((index) => `t.${quoteIdent(all[index]!.column)}`);
    const name = quoteName(table);
    return `
      SELECT pg_current_snapshot()::text, ${pg.escapeLiteral(name)}::regclass::oid, k.n, t.tableoid, ${values.join(', ')}
      FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS k(${names.join(', ')}, n)
      LEFT JOIN ${partitioned ? '' : 'ONLY '}${name} t ON ${matches.join(' AND ')}`;
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

async function readRows({ table, oid, query, readView, sleep }: LookUp, sql: string): Promise<(string | null)[][]> {
  const { mark } = readView;
  for (let delayMs = 2; ; delayMs = Math.min(2 * delayMs, 100)) {
    const rows = await query(sql).catch((error: unknown) => {
      throw asLookUpError(error, table);
    });
    const [snapshot, oidNow] = rows[0]!;
    if (Number(oidNow) !== oid) {
      throw new UrutauError('table-not-found', `${table}: another table has its name now`, { table });
    }
    if (readView.shownBy(snapshot!, mark)) return rows;
    await sleep(delayMs);
  }
}

/** A column that is gone, or has another type, by now: what it held at the time of the change cannot be told. */
function asLookUpError(error: unknown, table: string): unknown {
  const { code = '' } = ((error as Error).cause ?? {}) as { code?: string };
  if (!/^(22|42)/.test(code) || code === '42501' || code === '42P01') return error;
  return new UrutauError(
    'schema-lost',
    `${table}: the log leaves out unchanged values of an update, and the columns have changed since (SQLSTATE ${code})`,
    { table, cause: error },
  );
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

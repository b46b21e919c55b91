import { ChangeBatchBuilder, type ColumnBuilder, type EncodedBatch, UrutauError } from '@urutau/sdk';
import { type DeleteMessage, type TupleView, type UpdateMessage, VALUE } from './pgoutput.ts';
import type { RowShape } from './row-shape.ts';
import { textAppender, type ValueAppender } from './text-values.ts';

/** Values that the server did not send, by column; `gone` when the row no longer exists. */
export type Fill = ReadonlyMap<number, Uint8Array | null> | 'gone';

/** Puts changes of one shape straight into the columns of a batch. After an error it must not be used again. */
export class Assembler {
  readonly #rowShape: RowShape;
  readonly #builder: ChangeBatchBuilder;
  readonly #after: Columns;
  readonly #before: Columns;

  constructor(rowShape: RowShape) {
    this.#rowShape = rowShape;
    this.#builder = new ChangeBatchBuilder(rowShape.shape);
    this.#after = columnsOf(rowShape, this.#builder.after);
    this.#before = columnsOf(rowShape, this.#builder.before);
  }

  get rows(): number {
    return this.#builder.rows;
  }

  /** Bytes of the batch so far. */
  get byteLength(): number {
    return this.#builder.byteLength;
  }

  finish(): EncodedBatch {
    return this.#builder.finish();
  }

  insert(buffer: Uint8Array, after: TupleView, offset: Uint8Array, micros: number): void {
    this.#appendRow(this.#after, buffer, after);
    this.#builder.close('c', offset, micros);
  }

  /** `fill` holds at least the columns of `missingColumns`; without any it may be null. */
  update(buffer: Uint8Array, message: UpdateMessage, fill: Fill | null, offset: Uint8Array, micros: number): void {
    const { beforeImage, before, after } = message;
    if (fill === 'gone') {
      // The row was deleted or got another key later; its stream says so. Here at least its old key must go.
      this.#openBefore();
      this.#appendKey(buffer, beforeImage === 'none' ? after : before);
      this.#builder.close('d', offset, micros);
      return;
    }
    this.#appendUpdated(buffer, message, fill);
    if (beforeImage !== 'none') {
      this.#openBefore();
      if (beforeImage === 'full') this.#appendRow(this.#before, buffer, before);
      else this.#appendKey(buffer, before);
    }
    this.#builder.close('u', offset, micros);
  }

  delete(buffer: Uint8Array, { beforeImage, before }: DeleteMessage, offset: Uint8Array, micros: number): void {
    this.#openBefore();
    if (beforeImage === 'full') this.#appendRow(this.#before, buffer, before);
    else this.#appendKey(buffer, before);
    this.#builder.close('d', offset, micros);
  }

  #openBefore(): void {
    this.#builder.openBefore();
  }

  #appendRow({ builders, append }: Columns, buffer: Uint8Array, tuple: TupleView): void {
    const { kinds, starts, lengths } = tuple;
    this.#checkCount(tuple);
    for (let i = 0; i < append.length; i++) {
      const kind = kinds[i];
      if (kind === VALUE.text) append[i]!(buffer, starts[i]!, lengths[i]!);
      else if (kind === VALUE.null) builders[i]!.appendNull();
      else throw this.#unexpected(i);
    }
  }

  #appendUpdated(buffer: Uint8Array, { beforeImage, before, after }: UpdateMessage, fill: Fill | null): void {
    const { kinds, starts, lengths } = after;
    const { builders, append } = this.#after;
    this.#checkCount(after);
    for (let i = 0; i < append.length; i++) {
      const kind = kinds[i];
      if (kind === VALUE.text) append[i]!(buffer, starts[i]!, lengths[i]!);
      else if (kind === VALUE.null) builders[i]!.appendNull();
      else if (kind !== VALUE.unchanged) throw this.#unexpected(i);
      else if (beforeImage !== 'none' && before.kinds[i] === VALUE.text)
        append[i]!(buffer, before.starts[i]!, before.lengths[i]!);
      else this.#appendFilled(i, fill);
    }
  }

  #appendFilled(column: number, fill: Fill | null): void {
    const value = fill instanceof Map ? fill.get(column) : undefined;
    if (value === undefined) throw this.#unexpected(column);
    if (value === null) this.#after.builders[column]!.appendNull();
    else this.#after.append[column]!(value, 0, value.length);
  }

  #appendKey(buffer: Uint8Array, tuple: TupleView): void {
    this.#checkCount(tuple);
    for (const i of this.#rowShape.keyIndexes) {
      if (tuple.kinds[i] !== VALUE.text) throw this.#unexpected(i);
      this.#before.append[i]!(buffer, tuple.starts[i]!, tuple.lengths[i]!);
    }
  }

  #checkCount({ count }: TupleView): void {
    const expected = this.#rowShape.columns.length;
    if (count !== expected) {
      throw new UrutauError(
        'protocol-violation',
        `pgoutput: expected a row of ${expected} values; came one of ${count}`,
      );
    }
  }

  #unexpected(column: number): UrutauError {
    const { column: name } = this.#rowShape.columns[column]!;
    return new UrutauError('protocol-violation', `pgoutput: expected a value of column ${name}; came none`, {
      column: name,
    });
  }
}

/** The columns of an update whose values the server neither sent nor sent before: they must be looked up. */
export function missingColumns({ beforeImage, before, after }: UpdateMessage): number[] {
  const { kinds, count } = after;
  const missing: number[] = [];
  for (let i = 0; i < count; i++) {
    if (kinds[i] !== VALUE.unchanged) continue;
    if (beforeImage === 'none' || before.kinds[i] !== VALUE.text) missing.push(i);
  }
  return missing;
}

/** The key of a row for a report: `id=5`. Columns whose value is not there are left out. */
export function keyText({ keyIndexes, columns }: RowShape, buffer: Uint8Array, tuple: TupleView): string {
  const parts = keyIndexes.flatMap((i) => {
    if (tuple.kinds[i] !== VALUE.text) return [];
    const start = tuple.starts[i]!;
    return [`${columns[i]!.column}=${Buffer.from(buffer.subarray(start, start + tuple.lengths[i]!)).toString()}`];
  });
  return parts.join(', ');
}

interface Columns {
  builders: readonly ColumnBuilder[];
  append: readonly ValueAppender[];
}

function columnsOf({ types, columns }: RowShape, builders: readonly ColumnBuilder[]): Columns {
  return { builders, append: builders.map((builder, i) => textAppender(types[i]!.kind, builder, columns[i]!.column)) };
}

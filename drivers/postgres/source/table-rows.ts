import { type ColumnBuilder, type Kind, UrutauError } from '@urutau/sdk';
import { quoteIdent } from '../connection.ts';
import { binaryAppender } from './binary-values.ts';
import { CopyBinaryDecoder } from './copy-binary.ts';
import type { RowShape } from './row-shape.ts';
import type { Wire } from './wire.ts';

/** Where rows go as they come. */
export interface RowTarget {
  builders: readonly ColumnBuilder[];
  /** About so many bytes of a row, or a part of one, come next. */
  comes(bytes: number): void;
  /** The columns hold one more row. */
  rowDone(): void;
}

export interface CopyRowsOptions {
  wire: Wire;
  table: string;
  rowShape: RowShape;
  /** What stands behind SELECT … FROM. */
  from: string;
  target: RowTarget;
}

/** Reads rows by COPY straight into columns. The place of a refused row is told by its key. */
export async function copyRows({ wire, table, rowShape, from, target }: CopyRowsOptions): Promise<void> {
  const { columns, types, keyIndexes } = rowShape;
  const names = columns.map(({ column }) => column);
  const selected = names.map((name, i) => (types[i]!.copyAsText ? `${quoteIdent(name)}::text` : quoteIdent(name)));
  const decoder = new CopyBinaryDecoder({
    columns: names.map((name, i) => {
      const builder = target.builders[i]!;
      return { name, append: binaryAppender(types[i]!, builder, name), appendNull: () => builder.appendNull() };
    }),
    rowDone: () => {
      target.rowDone();
      return false;
    },
  });
  await wire.copy(`COPY (SELECT ${selected.join(', ')} FROM ${from}) TO STDOUT (FORMAT binary)`, {
    copyData: (buffer, start, end) => {
      target.comes(end - start);
      try {
        decoder.push(buffer.subarray(start, end));
      } catch (error) {
        // Now: the buffer is filled anew before anybody awaits the copy's end.
        throw withTable(error, table, rowShape, () => keyIndexes.map((i) => decoder.failedField(i)));
      }
    },
  });
  decoder.end();
}

function withTable(
  error: unknown,
  table: string,
  { columns, types, keyIndexes }: RowShape,
  key: () => (Uint8Array | null)[],
): unknown {
  if (!(error instanceof UrutauError) || (error.code !== 'row-refused' && error.code !== 'row-too-large')) return error;
  // In the binary form only some keys can be told as text; a plain integer or a text is.
  const parts = key().flatMap((bytes, i) => {
    const index = keyIndexes[i]!;
    const text = bytes === null ? null : keyValue(bytes, types[index]!.kind);
    return text === null ? [] : [`${columns[index]!.column}=${text}`];
  });
  const place = parts.length > 0 ? { key: parts.join(', ') } : {};
  const { code, remedy, context, message } = error;
  return new UrutauError(code, `${[table, place.key && `row ${place.key}`].filter(Boolean).join(', ')}: ${message}`, {
    cause: error,
    remedy,
    ...context,
    table,
    ...place,
  });
}

function keyValue(bytes: Uint8Array, kind: Kind): string | null {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (kind) {
    case 'string':
      return view.toString();
    case 'int32':
      return String(view.readIntBE(0, view.length));
    case 'int64':
      return String(view.readBigInt64BE());
    case 'uuid':
      return view.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    default:
      return null;
  }
}

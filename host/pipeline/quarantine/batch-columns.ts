import { decodeBatchHeader, UrutauError } from '@urutau/contract';
import { type Field, type Schema, Type } from 'apache-arrow';
import { valueBuffers } from '../source/base-batches.ts';

/** One column of a batch, over the bytes in which it came: nothing is copied, nothing converted. */
export interface BatchColumn {
  readonly field: Field;
  readonly length: number;
  /** Null where no value is NULL. */
  readonly validity: Uint8Array | null;
  /** What the type has behind the validity: values, or offsets, or offsets and data. */
  readonly buffers: readonly Uint8Array[];
  readonly children: readonly BatchColumn[];
}

export interface BatchColumns {
  readonly rows: number;
  readonly columns: readonly BatchColumn[];
}

/** Takes a batch apart. `body` may have any alignment. */
export function columnsOf(schema: Schema, header: Uint8Array, body: Uint8Array): BatchColumns {
  const { length: rows, nodes, buffers } = decodeBatchHeader(header);
  let nodeAt = 0;
  let bufferAt = 0;
  const nextBuffer = (): Uint8Array => {
    const place = buffers[bufferAt++];
    if (place === undefined || place.offset + place.length > body.length) throw cutShort();
    return body.subarray(place.offset, place.offset + place.length);
  };
  const column = (field: Field): BatchColumn => {
    const node = nodes[nodeAt++];
    if (node === undefined) throw cutShort();
    const validity = nextBuffer();
    const own = valueBuffers(field, 0).map(nextBuffer);
    const children = ((field.type.children ?? []) as Field[]).map(column);
    const hasNulls = node.nullCount > 0 && validity.length > 0;
    return { field, length: node.length, validity: hasNulls ? validity : null, buffers: own, children };
  };
  return { rows, columns: schema.fields.map(column) };
}

export function isNull({ validity }: BatchColumn, row: number): boolean {
  return validity !== null && ((validity[row >> 3]! >> (row & 7)) & 1) === 0;
}

/** The bytes of one value of a column of texts or bytes. */
export function bytesAt(column: BatchColumn, row: number): Uint8Array {
  return column.buffers[1]!.subarray(offsetAt(column, row), offsetAt(column, row + 1));
}

/** Where value `row` begins, in a column with offsets. */
export function offsetAt({ field, buffers }: BatchColumn, row: number): number {
  const [offsets] = buffers;
  // An empty column may leave its one offset out.
  if (offsets!.length === 0) return 0;
  return isLarge(field)
    ? Number(viewOf(offsets!).getBigInt64(8 * row, true))
    : viewOf(offsets!).getInt32(4 * row, true);
}

export function isLarge({ type: { typeId } }: Field): boolean {
  return typeId === Type.LargeUtf8 || typeId === Type.LargeBinary;
}

/** Bytes of one value of a type of fixed width; null for any other type. */
export function widthOf({ type }: Field): number | null {
  const { bitWidth, byteWidth, precision, unit } = type as unknown as Record<
    'bitWidth' | 'byteWidth' | 'precision' | 'unit',
    number
  >;
  switch (type.typeId) {
    case Type.Int:
    case Type.Decimal:
    case Type.Time:
      return bitWidth / 8;
    case Type.Float:
      return 2 << precision;
    case Type.Date:
      return unit === 0 ? 4 : 8;
    case Type.Timestamp:
      return 8;
    case Type.FixedSizeBinary:
      return byteWidth;
    default:
      return null;
  }
}

export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function cutShort(): UrutauError {
  return new UrutauError('protocol-violation', 'a batch lacks buffers that its schema asks for');
}

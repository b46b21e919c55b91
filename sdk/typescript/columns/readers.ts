import { alignedBody, type BatchLayout, kindOf, UrutauError } from '@urutau/contract';
import { type DataType, type Field, Type } from 'apache-arrow';

interface ColumnBase {
  readonly field: Field;
  readonly length: number;
  readonly nullCount: number;
  /** Null when every row has a value. Bit order as in Arrow. */
  readonly validity: Uint8Array | null;
}

/** One column of a batch as typed arrays over the received bytes. Branch on `kind` once per column, not per row. */
export type Column =
  | (ColumnBase & { kind: 'bool'; bits: Uint8Array })
  | (ColumnBase & { kind: 'int8'; values: Int8Array })
  | (ColumnBase & { kind: 'int16'; values: Int16Array })
  | (ColumnBase & { kind: 'int32'; values: Int32Array })
  | (ColumnBase & { kind: 'uint8'; values: Uint8Array })
  | (ColumnBase & { kind: 'uint16'; values: Uint16Array })
  | (ColumnBase & { kind: 'uint32'; values: Uint32Array })
  | (ColumnBase & { kind: 'int64'; values: BigInt64Array; halves: Uint32Array })
  | (ColumnBase & { kind: 'uint64'; values: BigUint64Array; halves: Uint32Array })
  | (ColumnBase & { kind: 'float32'; values: Float32Array })
  | (ColumnBase & { kind: 'float64'; values: Float64Array })
  /** `bytesPerValue` is 16 or 32; unscaled two's complement, little endian. */
  | (ColumnBase & { kind: 'decimal'; precision: number; scale: number; bytesPerValue: 16 | 32; bytes: Uint8Array })
  /** Days since 1970-01-01. */
  | (ColumnBase & { kind: 'date'; values: Int32Array })
  /** Microseconds since midnight. */
  | (ColumnBase & { kind: 'time'; values: BigInt64Array; halves: Uint32Array })
  /** Units since 1970-01-01T00:00:00, of which `unitsPerSecond` make a second. */
  | (ColumnBase & {
      kind: 'timestamp' | 'timestamptz';
      unitsPerSecond: 1n | 1_000n | 1_000_000n | 1_000_000_000n;
      values: BigInt64Array;
      halves: Uint32Array;
    })
  /** Row i is `bytes.subarray(offsets[i], offsets[i + 1])`; text is UTF-8. */
  | (ColumnBase & { kind: 'string' | 'json' | 'binary'; offsets: Int32Array | BigInt64Array; bytes: Uint8Array })
  | (ColumnBase & { kind: 'fixed' | 'uuid'; width: number; bytes: Uint8Array })
  | (ColumnBase & { kind: 'struct'; children: Column[] });

export function isNull({ validity }: ColumnBase, row: number): boolean {
  return validity !== null && (validity[row >> 3]! & (1 << (row & 7))) === 0;
}

/** Row `row` of a column of bytes, as a view. */
export function bytesAt(
  { offsets, bytes }: { offsets: Int32Array | BigInt64Array; bytes: Uint8Array },
  row: number,
): Uint8Array {
  return bytes.subarray(Number(offsets[row]), Number(offsets[row + 1]));
}

/** Lays columns over a record batch's body. Refuses a layout that does not fit the schema or the body. */
export function readColumns(fields: readonly Field[], layout: BatchLayout, body: Uint8Array): Column[] {
  const cursor = new LayoutCursor(layout, alignedBody(body));
  const columns = fields.map((field) => readColumn(field, cursor));
  cursor.expectEnd();
  return columns;
}

function readColumn(field: Field, cursor: LayoutCursor): Column {
  const { length, nullCount } = cursor.node(field.name);
  const validityBytes = cursor.buffer(field.name);
  const validity = nullCount === 0 || validityBytes.length === 0 ? null : validityBytes;
  const base: ColumnBase = { field, length, nullCount, validity };
  const { type } = field;
  switch (type.typeId) {
    case Type.Bool:
      return { ...base, kind: 'bool', bits: cursor.buffer(field.name) };
    case Type.Int:
      return intColumn(base, type, cursor);
    case Type.Float:
      return (type as unknown as { precision: number }).precision === 1
        ? { ...base, kind: 'float32', values: cursor.view(field.name, Float32Array, length) }
        : { ...base, kind: 'float64', values: cursor.view(field.name, Float64Array, length) };
    case Type.Decimal: {
      const { precision, scale, bitWidth } = type as unknown as { precision: number; scale: number; bitWidth: number };
      const bytesPerValue = bitWidth === 256 ? 32 : 16;
      return { ...base, kind: 'decimal', precision, scale, bytesPerValue, bytes: cursor.buffer(field.name) };
    }
    case Type.Date:
      if ((type as unknown as { unit: number }).unit !== 0) break;
      return { ...base, kind: 'date', values: cursor.view(field.name, Int32Array, length) };
    case Type.Time:
      return { ...base, kind: 'time', ...cursor.int64(field.name, length) };
    case Type.Timestamp: {
      const { unit, timezone } = type as unknown as { unit: 0 | 1 | 2 | 3; timezone?: string | null };
      const unitsPerSecond = ([1n, 1_000n, 1_000_000n, 1_000_000_000n] as const)[unit];
      const kind = timezone ? 'timestamptz' : 'timestamp';
      return { ...base, kind, unitsPerSecond, ...cursor.int64(field.name, length) };
    }
    case Type.Utf8:
    case Type.Binary: {
      const offsets = length === 0 ? new Int32Array(1) : cursor.view(field.name, Int32Array, length + 1);
      if (length === 0) cursor.buffer(field.name);
      return { ...base, kind: textKind(field), offsets, bytes: cursor.buffer(field.name) };
    }
    case Type.LargeUtf8:
    case Type.LargeBinary: {
      const offsets = length === 0 ? new BigInt64Array(1) : cursor.view(field.name, BigInt64Array, length + 1);
      if (length === 0) cursor.buffer(field.name);
      return { ...base, kind: textKind(field), offsets, bytes: cursor.buffer(field.name) };
    }
    case Type.FixedSizeBinary: {
      const width = (type as unknown as { byteWidth: number }).byteWidth;
      const kind = kindOf(type, field.metadata.get('ARROW:extension:name')) === 'uuid' ? 'uuid' : 'fixed';
      return { ...base, kind, width, bytes: cursor.buffer(field.name) };
    }
    case Type.Struct: {
      const children = (type.children as Field[]).map((child) => readColumn(child, cursor));
      return { ...base, kind: 'struct', children };
    }
  }
  throw new UrutauError('type-unsupported', `column ${field.name}: ${type} cannot be read yet`, { column: field.name });
}

function intColumn(base: ColumnBase, type: DataType, cursor: LayoutCursor): Column {
  const { bitWidth, isSigned } = type as unknown as { bitWidth: number; isSigned: boolean };
  const { name } = base.field;
  const { length } = base;
  switch (bitWidth) {
    case 8:
      return isSigned
        ? { ...base, kind: 'int8', values: cursor.view(name, Int8Array, length) }
        : { ...base, kind: 'uint8', values: cursor.view(name, Uint8Array, length) };
    case 16:
      return isSigned
        ? { ...base, kind: 'int16', values: cursor.view(name, Int16Array, length) }
        : { ...base, kind: 'uint16', values: cursor.view(name, Uint16Array, length) };
    case 32:
      return isSigned
        ? { ...base, kind: 'int32', values: cursor.view(name, Int32Array, length) }
        : { ...base, kind: 'uint32', values: cursor.view(name, Uint32Array, length) };
    default: {
      const { values, halves } = cursor.int64(name, length);
      return isSigned
        ? { ...base, kind: 'int64', values, halves }
        : {
            ...base,
            kind: 'uint64',
            values: new BigUint64Array(values.buffer, values.byteOffset, values.length),
            halves,
          };
    }
  }
}

function textKind({ type, metadata }: Field): 'string' | 'json' | 'binary' {
  if (type.typeId === Type.Binary || type.typeId === Type.LargeBinary) return 'binary';
  return metadata.get('ARROW:extension:name') === 'arrow.json' ? 'json' : 'string';
}

type ViewConstructor<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  BYTES_PER_ELEMENT: number;
};

/** Hands out nodes and buffers in order; the one place that checks them against the body. */
class LayoutCursor {
  readonly #layout: BatchLayout;
  readonly #body: Uint8Array;
  #node = 0;
  #buffer = 0;

  constructor(layout: BatchLayout, body: Uint8Array) {
    this.#layout = layout;
    this.#body = body;
  }

  node(column: string): { length: number; nullCount: number } {
    const node = this.#layout.nodes[this.#node++];
    if (node === undefined) throw misfit(column, 'the batch has fewer columns than its schema');
    return node;
  }

  buffer(column: string): Uint8Array {
    const buffer = this.#layout.buffers[this.#buffer++];
    if (buffer === undefined) throw misfit(column, 'the batch has fewer buffers than its schema asks for');
    if (buffer.offset < 0 || buffer.offset + buffer.length > this.#body.length) {
      throw misfit(column, `a buffer ends at ${buffer.offset + buffer.length} of a body of ${this.#body.length} bytes`);
    }
    return this.#body.subarray(buffer.offset, buffer.offset + buffer.length);
  }

  view<T>(column: string, View: ViewConstructor<T>, length: number): T {
    const bytes = this.buffer(column);
    if (bytes.length < length * View.BYTES_PER_ELEMENT) {
      throw misfit(column, `${bytes.length} bytes for ${length} values of ${View.BYTES_PER_ELEMENT} bytes`);
    }
    if (bytes.byteOffset % View.BYTES_PER_ELEMENT === 0) return new View(bytes.buffer, bytes.byteOffset, length);
    return new View(Uint8Array.from(bytes).buffer, 0, length);
  }

  int64(column: string, length: number): { values: BigInt64Array; halves: Uint32Array } {
    const values = this.view(column, BigInt64Array, length);
    return { values, halves: new Uint32Array(values.buffer, values.byteOffset, 2 * length) };
  }

  expectEnd(): void {
    if (this.#node !== this.#layout.nodes.length || this.#buffer !== this.#layout.buffers.length) {
      throw misfit('(last)', 'the batch has more columns or buffers than its schema');
    }
  }
}

function misfit(column: string, problem: string): UrutauError {
  return new UrutauError('protocol-violation', `column ${column}: ${problem}`, { column });
}

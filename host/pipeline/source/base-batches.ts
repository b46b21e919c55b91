import { decodeBatchHeader, type Envelope, encodeBatchHeader, UrutauError } from '@urutau/contract';
import { type Field, type Schema, Type } from 'apache-arrow';

const OPS: Record<number, 'c' | 'u' | 'd'> = { 99: 'c', 117: 'u', 100: 'd' };

/** Counts and last offset of a batch of change records that came without an envelope. */
export function describeChanges(schema: Schema, header: Uint8Array, body: Uint8Array): Omit<Envelope, 'seq'> {
  const layout = decodeBatchHeader(header);
  checkColumns(schema, layout);
  const rows = layout.length;
  if (rows === 0) return { rows, ops: {} };
  const bytesOf = (column: string) => {
    let at = 0;
    for (const field of schema.fields) {
      if (field.name === column) break;
      at += bufferCount(field);
    }
    const [offsets, data] = [layout.buffers[at + 1]!, layout.buffers[at + 2]!];
    const view = new DataView(body.buffer, body.byteOffset + offsets.offset, 4 * (rows + 1));
    return (row: number) => {
      const start = view.getInt32(4 * row, true);
      return body.subarray(data.offset + start, data.offset + view.getInt32(4 * row + 4, true));
    };
  };
  const ops = { c: 0, u: 0, d: 0 };
  const opOf = bytesOf('op');
  for (let row = 0; row < rows; row++) {
    const op = OPS[opOf(row)[0] ?? 0];
    if (op === undefined || opOf(row).length !== 1) {
      const came = JSON.stringify(Buffer.from(opOf(row)).toString());
      throw new UrutauError('protocol-violation', `expected op c, u or d; came ${came} (CHG-5)`, { row });
    }
    ops[op]++;
  }
  return { rows, ops, offset: Buffer.from(bytesOf('offset')(rows - 1)).toString('base64') };
}

/** Puts `op`, an empty `before` where the schema has one, `offset` and `ts_source` around a batch of rows. */
export function wrapRows(
  schema: Schema,
  header: Uint8Array,
  body: Uint8Array,
  offset: Uint8Array,
): { header: Uint8Array; body: Uint8Array[]; rows: number } {
  const rowLayout = decodeBatchHeader(header);
  checkColumns(rowsOf(schema), rowLayout);
  const rows = rowLayout.length;
  const out = new BodyWriter();
  for (const field of schema.fields) {
    switch (field.name) {
      case 'op':
        out.repeated(rows, Uint8Array.of(0x63));
        break;
      case 'before':
        out.allNull(field, rows);
        break;
      case 'after':
        out.nodes.push({ length: rows, nullCount: 0 }, ...rowLayout.nodes);
        out.absent();
        out.existing(rowLayout.buffers, body);
        break;
      case 'offset':
        out.repeated(rows, offset);
        break;
      case 'ts_source':
        out.allNull(field, rows);
        break;
    }
  }
  const { nodes, buffers, pieces, length } = out;
  return { header: encodeBatchHeader({ length: rows, nodes, buffers, bodyLength: length }), body: pieces, rows };
}

class BodyWriter {
  readonly nodes: { length: number; nullCount: number }[] = [];
  readonly buffers: { offset: number; length: number }[] = [];
  readonly pieces: Uint8Array[] = [];
  length = 0;

  /** A validity buffer of a column without NULLs. */
  absent(): void {
    this.buffers.push({ offset: this.length, length: 0 });
  }

  /** The same bytes in each row. */
  repeated(rows: number, value: Uint8Array): void {
    this.nodes.push({ length: rows, nullCount: 0 });
    this.absent();
    const offsets = new Int32Array(rows + 1);
    for (let row = 0; row <= rows; row++) offsets[row] = row * value.length;
    this.#append(new Uint8Array(offsets.buffer));
    const bytes = new Uint8Array(rows * value.length);
    for (let row = 0; row < rows; row++) bytes.set(value, row * value.length);
    this.#append(bytes);
  }

  allNull(field: Field, rows: number): void {
    this.nodes.push({ length: rows, nullCount: rows });
    this.#append(new Uint8Array((rows + 7) >> 3));
    for (const width of valueBuffers(field, rows)) this.#append(new Uint8Array(width));
    for (const child of field.type.children ?? []) this.allNull(child, field.type.typeId === Type.Struct ? rows : 0);
  }

  /** Buffers that lie in another body, which is taken over whole. */
  existing(buffers: readonly { offset: number; length: number }[], body: Uint8Array): void {
    const base = this.length;
    for (const { offset, length } of buffers) this.buffers.push({ offset: base + offset, length });
    this.#push(body);
  }

  #append(bytes: Uint8Array): void {
    this.buffers.push({ offset: this.length, length: bytes.length });
    this.#push(bytes);
  }

  #push(bytes: Uint8Array): void {
    const padding = -bytes.length & 7;
    this.pieces.push(bytes, new Uint8Array(padding));
    this.length += bytes.length + padding;
  }
}

/** Lengths of the buffers behind the validity of an all-NULL column, its children's excluded. */
export function valueBuffers({ name, type }: Field, rows: number): number[] {
  const fixed = (bits: number) => [Math.ceil((rows * bits) / 8)];
  const { bitWidth, byteWidth, precision, unit } = type as unknown as Record<
    'bitWidth' | 'byteWidth' | 'precision' | 'unit',
    number
  >;
  switch (type.typeId) {
    case Type.Bool:
      return fixed(1);
    case Type.Int:
    case Type.Decimal:
      return fixed(bitWidth);
    case Type.Float:
      return fixed(16 << precision);
    case Type.Date:
      return fixed(unit === 0 ? 32 : 64);
    case Type.Time:
      return fixed(bitWidth);
    case Type.Timestamp:
      return fixed(64);
    case Type.FixedSizeBinary:
      return fixed(8 * byteWidth);
    case Type.Utf8:
    case Type.Binary:
      return [4 * (rows + 1), 0];
    case Type.LargeUtf8:
    case Type.LargeBinary:
      return [8 * (rows + 1), 0];
    case Type.Struct:
      return [];
    case Type.List:
    case Type.Map:
      return [4 * (rows + 1)];
    default:
      throw new UrutauError('type-unsupported', `column ${name}: ${type} is not allowed on the wire (TYP-2)`, {
        column: name,
      });
  }
}

/** A batch of other columns than its stream's would be read as something that it is not, here or by the sink. */
function checkColumns(
  { fields }: { fields: readonly Field[] },
  { nodes, buffers }: ReturnType<typeof decodeBatchHeader>,
): void {
  const expected = [sum(fields.map(nodeCount)), sum(fields.map(bufferCount))];
  if (nodes.length === expected[0] && buffers.length === expected[1]) return;
  throw new UrutauError(
    'protocol-violation',
    `expected a batch of ${expected[0]} columns, those inside of columns included, in ${expected[1]} buffers, as the ` +
      `schema of its stream has them; came ${nodes.length} in ${buffers.length} (CHG-2)`,
  );
}

function rowsOf(changes: Schema): { fields: readonly Field[] } {
  return { fields: changes.fields.find(({ name }) => name === 'after')!.type.children };
}

function nodeCount(field: Field): number {
  return 1 + sum((field.type.children ?? []).map(nodeCount));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

export function bufferCount(field: Field): number {
  const own = 1 + valueBuffers(field, 0).length;
  return own + sum((field.type.children ?? []).map(bufferCount));
}

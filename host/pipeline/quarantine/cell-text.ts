import { kindOf, UrutauError } from '@urutau/contract';
import { type Field, Type } from 'apache-arrow';
import { dayText, decimalText, floorDiv, uuidText } from '../../value-text.ts';
import { type BatchColumn, bytesAt, isNull, offsetAt, viewOf } from './batch-columns.ts';

/**
 * One value as JSON text, for people to read and for keys to be told apart: numbers with all their digits, decimals as
 * text with all their places, bytes as hexadecimal text.
 */
export function cellJson(column: BatchColumn, row: number): string {
  if (isNull(column, row)) return 'null';
  const { field, buffers, children } = column;
  const values = () => viewOf(buffers[0]!);
  const { bitWidth, isSigned, scale, byteWidth, unit } = field.type as unknown as {
    bitWidth: number;
    isSigned: boolean;
    scale: number;
    byteWidth: number;
    unit: number;
  };
  switch (field.type.typeId) {
    case Type.Bool:
      return ((buffers[0]![row >> 3]! >> (row & 7)) & 1) === 1 ? 'true' : 'false';
    case Type.Int:
      return String(integerAt(buffers[0]!, row, bitWidth / 8, isSigned));
    case Type.Float: {
      const { precision } = field.type as unknown as { precision: number };
      const value = precision === 1 ? values().getFloat32(4 * row, true) : values().getFloat64(8 * row, true);
      return Number.isFinite(value) ? JSON.stringify(value) : JSON.stringify(String(value));
    }
    case Type.Decimal:
      return JSON.stringify(decimalText(integerAt(buffers[0]!, row, bitWidth / 8, true), scale));
    case Type.Utf8:
    case Type.LargeUtf8: {
      const text = Buffer.from(bytesAt(column, row)).toString();
      return JSON.stringify(text);
    }
    case Type.Binary:
    case Type.LargeBinary:
      return JSON.stringify(hex(bytesAt(column, row)));
    case Type.FixedSizeBinary: {
      const digits = hex(buffers[0]!.subarray(row * byteWidth, (row + 1) * byteWidth));
      return JSON.stringify(isUuid(field) ? uuidText(digits) : digits);
    }
    case Type.Date:
      return JSON.stringify(dateText(integerAt(buffers[0]!, row, unit === 0 ? 4 : 8, true), unit));
    case Type.Time:
      return JSON.stringify(timeText(integerAt(buffers[0]!, row, bitWidth / 8, true), unit));
    case Type.Timestamp: {
      const { timezone } = field.type as unknown as { timezone?: string | null };
      const count = integerAt(buffers[0]!, row, 8, true);
      const perDay = 86_400n * perSecond(unit);
      const days = floorDiv(count, perDay);
      const text = `${dayText(days)}T${timeText(count - days * perDay, unit)}${timezone ? 'Z' : ''}`;
      return JSON.stringify(text);
    }
    case Type.Struct:
      return rowJson(children, row);
    case Type.List:
    case Type.Map: {
      const items: string[] = [];
      for (let item = offsetAt(column, row); item < offsetAt(column, row + 1); item++) {
        items.push(cellJson(children[0]!, item));
      }
      return `[${items.join(',')}]`;
    }
    default:
      throw new UrutauError(
        'type-unsupported',
        `column ${field.name}: ${field.type} is not allowed on the wire (TYP-2)`,
      );
  }
}

/** One row as a JSON object. */
export function rowJson(columns: readonly BatchColumn[], row: number): string {
  const members = columns.map((column) => `${JSON.stringify(column.field.name)}:${cellJson(column, row)}`);
  return `{${members.join(',')}}`;
}

/** Little-endian, two's complement where signed. */
function integerAt(bytes: Uint8Array, row: number, width: number, isSigned: boolean): bigint {
  const view = viewOf(bytes.subarray(row * width, (row + 1) * width));
  let value = 0n;
  for (let at = width - 1; at >= 0; at--) value = (value << 8n) | BigInt(view.getUint8(at));
  return isSigned ? BigInt.asIntN(8 * width, value) : value;
}

/** Units of Arrow: seconds, milliseconds, microseconds, nanoseconds. */
function perSecond(unit: number): bigint {
  return 1000n ** BigInt(unit);
}

function timeText(count: bigint, unit: number): string {
  const seconds = count / perSecond(unit);
  const [h, m, s] = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) =>
    String(part).padStart(2, '0'),
  );
  const fraction = unit === 0 ? '' : `.${String(count % perSecond(unit)).padStart(3 * unit, '0')}`;
  return `${h}:${m}:${s}${fraction}`;
}

function dateText(count: bigint, unit: number): string {
  return dayText(unit === 0 ? count : floorDiv(count, 86_400_000n));
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function isUuid({ type, metadata }: Field): boolean {
  return kindOf(type, metadata.get('ARROW:extension:name')) === 'uuid';
}

import { type Column, isNull, UrutauError } from '@urutau/sdk';
import { dateText, timestampText, timeText } from './iso-time.ts';

/** The JSON text of one row's value. */
export type ValueText = (row: number) => string;

/** `{"id":1,"name":"a"}`: one object of these columns for each row. */
export function objectText(columns: readonly Column[]): ValueText {
  const names = columns.map(({ field }, index) => `${index === 0 ? '' : ','}${JSON.stringify(field.name)}:`);
  const values = columns.map(valueText);
  return (row) => {
    let text = '{';
    for (let i = 0; i < values.length; i++) text += names[i]! + values[i]!(row);
    return `${text}}`;
  };
}

/** The kind is looked at once per column; NULL is `null` in every kind. */
function valueText(column: Column): ValueText {
  const text = presentText(column);
  return column.validity === null ? text : (row) => (isNull(column, row) ? 'null' : text(row));
}

function presentText(column: Column): ValueText {
  switch (column.kind) {
    case 'bool':
      return (row) => ((column.bits[row >> 3]! & (1 << (row & 7))) === 0 ? 'false' : 'true');
    case 'int8':
    case 'int16':
    case 'int32':
    case 'uint8':
    case 'uint16':
    case 'uint32':
      return (row) => `${column.values[row]}`;
    case 'int64':
    case 'uint64':
      return int64Text(column);
    case 'float32':
      return (row) => floatText(shortestFloat32(column.values[row]!));
    case 'float64':
      return (row) => floatText(column.values[row]!);
    case 'decimal':
      return decimalText(column);
    case 'date':
      return (row) => `"${dateText(column.values[row]!)}"`;
    case 'time':
      return (row) => `"${timeText(Number(column.values[row]), 1_000_000)}"`;
    case 'timestamp':
      return (row) => `"${timestampText(column.values[row]!, column.unitsPerSecond)}"`;
    case 'timestamptz':
      return (row) => `"${timestampText(column.values[row]!, column.unitsPerSecond)}Z"`;
    case 'string':
      return stringText(column);
    case 'json':
      return jsonText(column);
    case 'binary': {
      const bytes = asBuffer(column.bytes);
      return (row) => `"${bytes.toString('base64', Number(column.offsets[row]), Number(column.offsets[row + 1]))}"`;
    }
    case 'fixed': {
      const bytes = asBuffer(column.bytes);
      return (row) => `"${bytes.toString('base64', row * column.width, (row + 1) * column.width)}"`;
    }
    case 'uuid':
      return uuidText(column.bytes);
    case 'struct':
      return objectText(column.children);
  }
}

/** A number where JSON readers keep it exact, a string beyond 2^53. */
function int64Text(column: Extract<Column, { kind: 'int64' | 'uint64' }>): ValueText {
  const { halves, values, kind } = column;
  const signed = kind === 'int64';
  return (row) => {
    const high = halves[2 * row + 1]!;
    const number = (signed ? high | 0 : high) * 4294967296 + halves[2 * row]!;
    return Number.isSafeInteger(number) ? `${number}` : `"${values[row]}"`;
  };
}

function floatText(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  return Object.is(value, -0) ? '-0' : `${value}`;
}

/** The shortest decimal that means this float32: 0.1, not 0.10000000149011612. */
function shortestFloat32(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    // `is`, since -0 has lost its sign in the text.
    if (Object.is(Math.fround(short), value)) return short;
  }
  return value;
}

function decimalText(column: Extract<Column, { kind: 'decimal' }>): ValueText {
  const { scale, bytesPerValue } = column;
  const bytes = column.bytes.byteOffset % 4 === 0 ? column.bytes : Uint8Array.from(column.bytes);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  const wordsPerValue = bytesPerValue / 4;
  return (row) => {
    const unscaled = smallUnscaled(words, row * wordsPerValue, wordsPerValue);
    const text = `${unscaled ?? bigUnscaled(words, row * wordsPerValue, wordsPerValue)}`;
    return `"${withPoint(text, scale)}"`;
  };
}

/** Most decimals fit a safe integer; null for those that do not. */
function smallUnscaled(words: Uint32Array, at: number, count: number): number | null {
  const sign = words[at + count - 1]!;
  for (let i = at + 2; i < at + count; i++) if (words[i] !== sign) return null;
  const high = words[at + 1]! | 0;
  if (sign !== (high < 0 ? 0xffffffff : 0)) return null;
  const value = high * 4294967296 + words[at]!;
  return Number.isSafeInteger(value) ? value : null;
}

function bigUnscaled(words: Uint32Array, at: number, count: number): bigint {
  let value = 0n;
  for (let i = at + count - 1; i >= at; i--) value = (value << 32n) | BigInt(words[i]!);
  return BigInt.asIntN(32 * count, value);
}

function withPoint(unscaled: string, scale: number): string {
  if (scale === 0) return unscaled;
  if (scale < 0) return unscaled === '0' ? unscaled : unscaled + '0'.repeat(-scale);
  const sign = unscaled.startsWith('-') ? '-' : '';
  const digits = unscaled.slice(sign.length).padStart(scale + 1, '0');
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

type TextColumn = Extract<Column, { kind: 'string' | 'json' | 'binary' }>;

/** Most columns hold plain ASCII without anything to escape: they are decoded whole, and cells are cut out. */
function stringText(column: TextColumn): ValueText {
  const cell = textOf(column);
  if (cell.nothingToEscape) return (row) => `"${cell.text(row)}"`;
  return (row) => JSON.stringify(cell.text(row));
}

/** Put in as it came, so that its numbers keep their digits; a line break between its tokens would end the line. */
function jsonText(column: TextColumn): ValueText {
  const { text } = textOf(column);
  return (row) => {
    const json = text(row);
    if (!isJson(json)) {
      throw new UrutauError(
        'row-refused',
        `column ${column.field.name}: expected JSON text; came text that is no JSON`,
        {
          column: column.field.name,
        },
      );
    }
    return /[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
  };
}

function textOf({ bytes, offsets }: TextColumn): { text: ValueText; nothingToEscape: boolean } {
  const buffer = asBuffer(bytes);
  const whole = buffer.toString();
  // One character per byte: all is ASCII, and offsets of bytes are offsets of characters.
  if (whole.length !== bytes.length) {
    return {
      text: (row) => buffer.toString('utf8', Number(offsets[row]), Number(offsets[row + 1])),
      nothingToEscape: false,
    };
  }
  return {
    text: (row) => whole.slice(Number(offsets[row]), Number(offsets[row + 1])),
    nothingToEscape: !/["\\\p{Cc}]/u.test(whole),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function uuidText(bytes: Uint8Array): ValueText {
  const buffer = asBuffer(bytes);
  return (row) => {
    const hex = buffer.toString('hex', 16 * row, 16 * row + 16);
    return `"${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}"`;
  };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

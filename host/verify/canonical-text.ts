import { kindOf } from '@urutau/contract';
import { type Data, makeVector, Type } from 'apache-arrow';
import { dayText, decimalText, uuidText } from '../value-text.ts';
import { canonicalJson } from './canonical-json.ts';
import type { Form } from './column-pairs.ts';

/** Gives row by row the one text that all equal values of the form have, whatever type holds them; null is NULL. */
export function canonicalText(data: Data, form: Form): (row: number) => string | null {
  const vector = makeVector(data);
  const write = writerOf(data, form);
  return (row) => {
    const value: unknown = vector.get(row);
    return value === null ? null : write(value, row);
  };
}

function writerOf(data: Data, form: Form): (value: unknown, row: number) => string {
  const plain = plainWriter(data);
  switch (form) {
    case 'number':
      return (value, row) => withoutTrailingZeros(plain(value, row));
    case 'double':
      return (value, row) => (typeof value === 'number' ? doubleText(value) : plain(value, row));
    case 'instant':
      return (_, row) => String(nanosOf(data, row));
    case 'bytes':
      return (value) => Buffer.from(value as Uint8Array).toString('hex');
    case 'json':
      return (value, row) => canonicalJson(plain(value, row));
    case 'as-is':
    case 'text':
      return plain;
  }
}

/** As a person reads it; exact. */
function plainWriter(data: Data): (value: unknown, row: number) => string {
  const { type } = data;
  const { scale = 0, unit = 0, bitWidth = 0 } = type as unknown as { scale?: number; unit?: number; bitWidth?: number };
  switch (data.typeId) {
    case Type.Float:
      return (value) => doubleText(value as number);
    case Type.Decimal:
      return (_, row) => decimalText(unscaled(data.values as Uint32Array, row, bitWidth / 32), scale);
    case Type.Date:
      return (_, row) => dayText(BigInt((data.values as Int32Array)[row]!));
    case Type.Time:
      return (_, row) => timeText((data.values as BigInt64Array)[row]! * NANOS_OF_UNIT[unit]!);
    case Type.Timestamp:
      return (_, row) => instantText(nanosOf(data, row));
    case Type.Binary:
    case Type.LargeBinary:
      return (value) => Buffer.from(value as Uint8Array).toString('hex');
    case Type.FixedSizeBinary: {
      // Without the field's metadata 16 bytes may be a uuid or not; as a text they can only be meant as one.
      const isUuid = kindOf(type) === 'fixed(16)';
      return (value) =>
        isUuid
          ? uuidText(Buffer.from(value as Uint8Array).toString('hex'))
          : Buffer.from(value as Uint8Array).toString('hex');
    }
    case Type.Struct:
    case Type.List:
    case Type.Map:
      return (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
    default:
      return String;
  }
}

/** `1.50` and `1.5`, `007` and `7`, `-0` and `0`; what is no plain number, such as NaN, stays as it is. */
export function withoutTrailingZeros(text: string): string {
  const match = /^(-?)0*(\d*)(?:\.(\d*))?$/.exec(text);
  if (match === null || text === '') return text;
  const [, sign, whole, fraction = ''] = match;
  const rest = fraction.replace(/0+$/, '');
  const digits = `${whole === '' ? '0' : whole}${rest === '' ? '' : `.${rest}`}`;
  return digits === '0' ? '0' : `${sign}${digits}`;
}

function doubleText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

/** Two's complement of `words` words of 32 bits, the least first. */
function unscaled(values: Uint32Array, row: number, words: number): bigint {
  let value = 0n;
  for (let at = words - 1; at >= 0; at--) value = (value << 32n) | BigInt(values[row * words + at]! >>> 0);
  return BigInt.asIntN(32 * words, value);
}

/** By Arrow's numbers of units: seconds, milli-, micro- and nanoseconds. */
const NANOS_OF_UNIT: readonly bigint[] = [1_000_000_000n, 1_000_000n, 1_000n, 1n];
const NANOS_OF_DAY = 86_400_000_000_000n;

function nanosOf(data: Data, row: number): bigint {
  const { unit } = data.type as unknown as { unit: number };
  return (data.values as BigInt64Array)[row]! * NANOS_OF_UNIT[unit]!;
}

function instantText(nanos: bigint): string {
  const ofDay = ((nanos % NANOS_OF_DAY) + NANOS_OF_DAY) % NANOS_OF_DAY;
  return `${dayText((nanos - ofDay) / NANOS_OF_DAY)} ${timeText(ofDay)}`;
}

function timeText(nanosOfDay: bigint): string {
  const seconds = nanosOfDay / 1_000_000_000n;
  const part = (value: bigint) => String(value).padStart(2, '0');
  const fraction = String(nanosOfDay % 1_000_000_000n)
    .padStart(9, '0')
    .replace(/0+$/, '');
  const clock = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map(part).join(':');
  return fraction === '' ? clock : `${clock}.${fraction}`;
}

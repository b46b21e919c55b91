import { type Kind, kindOf, METADATA } from '@urutau/sdk';
import { type Field, Type } from 'apache-arrow';
import type { PgForm } from './pg-form.ts';
import type { TargetColumn } from './target.ts';

/** How a column of the wire goes into a column of the target. */
export interface ColumnPlan {
  readonly name: string;
  readonly form: PgForm;
  /** SQL type of the column in the staging table. */
  readonly stageType: string;
  /** SQL type that the merge casts to; null where the staged value goes as it is. */
  readonly cast: string | null;
}

/** Null when the target's column cannot hold every value of the wire's. */
export function columnPlan(field: Field, target: Pick<TargetColumn, 'type' | 'formatted'>): ColumnPlan | null {
  const form = formFor(field, target);
  if (form !== null) return { name: field.name, form, stageType: target.formatted, cast: null };
  // A text of the same vendor's type is read by the server's own input function, after it was staged as text.
  if (kindOfField(field) === 'string' && sourceTypeOf(field) === target.formatted && isTextOfType(target.type)) {
    return { name: field.name, form: 'text', stageType: 'text', cast: target.formatted };
  }
  return null;
}

/** The type that a created column gets for its kind alone; null for a kind that the sink does not write. */
export function typeForKind(field: Field): string | null {
  const kind = kindOfField(field);
  switch (kind) {
    case 'bool':
      return 'boolean';
    case 'int32':
      return 'integer';
    case 'int64':
      return 'bigint';
    case 'uint64':
      return 'numeric(20,0)';
    case 'float32':
      return 'real';
    case 'float64':
      return 'double precision';
    case 'string':
      return 'text';
    case 'binary':
      return 'bytea';
    case 'date':
      return 'date';
    case 'time':
      return 'time without time zone';
    case 'timestamp':
      return 'timestamp without time zone';
    case 'timestamptz':
      return 'timestamp with time zone';
    case 'uuid':
      return 'uuid';
    case 'json':
      return 'jsonb';
    case 'struct':
    case 'list':
    case 'map':
      return null;
    default:
      return kind.startsWith('fixed') ? 'bytea' : decimalType(kind);
  }
}

export function kindOfField({ type, metadata }: Field): Kind {
  return kindOf(type, metadata.get('ARROW:extension:name'));
}

export function sourceTypeOf({ metadata }: Field): string | undefined {
  return metadata.get(METADATA.sourceType);
}

function decimalType(kind: string): string {
  const [precision, scale] = digitsOf(kind)!;
  // Arrow knows scales that older servers do not.
  return scale < 0 || scale > precision ? 'numeric' : `numeric(${precision},${scale})`;
}

/** The form in which the target's type takes the field directly, or null. */
function formFor(field: Field, { type, formatted }: Pick<TargetColumn, 'type' | 'formatted'>): PgForm | null {
  const kind = kindOfField(field);
  switch (kind) {
    case 'bool':
      return type === 'bool' ? 'bool' : null;
    case 'int32':
      if (type === 'int4' || type === 'int8') return type;
      if (type === 'int2') return isShort(field) ? 'int2' : null;
      return holdsDigits(type, formatted, 10, 0) ? 'numeric' : null;
    case 'int64':
      if (type === 'int8') return 'int8';
      return holdsDigits(type, formatted, 19, 0) ? 'numeric' : null;
    case 'uint64':
      if (type === 'oid') return sourceTypeOf(field) === 'oid' ? 'oid' : null;
      return holdsDigits(type, formatted, 20, 0) ? 'numeric' : null;
    case 'float32':
      return type === 'float4' || type === 'float8' ? type : null;
    case 'float64':
      return type === 'float8' ? type : null;
    case 'string':
      return takesText(field, type, formatted) ? 'text' : null;
    case 'json':
      if (type === 'jsonb') return 'jsonb';
      return type === 'json' || type === 'text' || formatted === 'character varying' ? 'text' : null;
    case 'binary':
      return type === 'bytea' ? 'bytea' : null;
    case 'date':
      return type === 'date' ? 'date' : null;
    case 'time':
      return type === 'time' && keepsMicroseconds(field, formatted) ? 'time' : null;
    case 'timestamp':
    case 'timestamptz':
      return type === kind && keepsMicroseconds(field, formatted) ? 'timestamp' : null;
    case 'uuid':
      return type === 'uuid' ? 'uuid' : null;
    case 'struct':
    case 'list':
    case 'map':
      return null;
    default: {
      if (kind.startsWith('fixed')) return type === 'bytea' ? 'bytea' : null;
      const [precision, scale] = digitsOf(kind)!;
      return holdsDigits(type, formatted, precision - scale, Math.max(scale, 0)) ? 'numeric' : null;
    }
  }
}

function isShort(field: Field): boolean {
  const { typeId, bitWidth, isSigned } = field.type as unknown as { typeId: Type; bitWidth: number; isSigned: boolean };
  return (
    sourceTypeOf(field) === 'smallint' || (typeId === Type.Int && (bitWidth === 8 || (bitWidth === 16 && isSigned)))
  );
}

/** A numeric with less room would round silently. */
function holdsDigits(type: string, formatted: string, whole: number, fraction: number): boolean {
  if (type !== 'numeric') return false;
  const room = digitsOf(formatted);
  return room === null || (room[1] >= fraction && room[0] - room[1] >= whole);
}

function digitsOf(text: string): [precision: number, scale: number] | null {
  const match = /\((\d+),(-?\d+)\)/.exec(text);
  return match && [Number(match[1]), Number(match[2])];
}

/** `character(n)` pads, so it takes only its own kind; a text that is too long for varchar(n) is refused, never cut. */
function takesText(field: Field, type: string, formatted: string): boolean {
  switch (type) {
    case 'text':
    case 'varchar':
    case 'citext':
    case 'enum':
      return true;
    case 'bpchar':
    case 'name':
      return sourceTypeOf(field) === formatted;
    default:
      return false;
  }
}

/** A precision below microseconds would round silently, unless the source has the same one. */
function keepsMicroseconds(field: Field, formatted: string): boolean {
  return !formatted.includes('(') || sourceTypeOf(field) === formatted;
}

/** Types that sources send as text because no kind holds them. A column of another type is text by the user's cast. */
function isTextOfType(type: string): boolean {
  return !KINDS_OF_THEIR_OWN.has(type);
}

const KINDS_OF_THEIR_OWN = new Set(
  'bool int2 int4 int8 float4 float8 bytea date time timestamp timestamptz uuid json jsonb'.split(' '),
);

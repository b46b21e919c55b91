import { type Kind, kindOf, METADATA, UrutauError } from '@urutau/contract';
import type { Field, Schema } from 'apache-arrow';

/**
 * How the values of a column are compared. `as-is` where both sides have one Arrow type; else both are written as one text:
 * exact numbers without trailing zeros, floating-point numbers as doubles, instants in nanoseconds, bytes in hexadecimal
 * digits, JSON with sorted keys, anything else as a person reads it.
 */
export type Form = 'as-is' | 'number' | 'double' | 'instant' | 'bytes' | 'json' | 'text';

export interface ColumnPair {
  readonly name: string;
  readonly form: Form;
  readonly key: boolean;
  /** Place of the column on each side. */
  readonly source: number;
  readonly destination: number;
}

/**
 * The source's columns, those of the key first, each with its counterpart in the destination, which may have more. Throws
 * `schema-unsupported` with the names of those that it lacks.
 */
export function pairColumns(
  source: Schema,
  destination: Schema,
  primaryKey: readonly string[],
  table: { source: string; target: string },
): ColumnPair[] {
  const placeOf = new Map(destination.fields.map(({ name }, place) => [name, place]));
  const names = source.fields.map(({ name }) => name);
  const noKey = primaryKey.filter((name) => !names.includes(name));
  if (noKey.length > 0) throw lacks(table.source, noKey, 'Correct `primaryKey` in the pipeline file.');
  const missing = names.filter((name) => !placeOf.has(name));
  if (missing.length > 0) {
    throw lacks(table.target, missing, `Add them to the target, or run \`urutau-host table resync ${table.source}\`.`);
  }
  const pairs = source.fields.map((field, place): ColumnPair => {
    const other = placeOf.get(field.name)!;
    const form = formOf(field, destination.fields[other]!);
    return { name: field.name, form, key: primaryKey.includes(field.name), source: place, destination: other };
  });
  const keyPlace = ({ name, key }: ColumnPair) => (key ? primaryKey.indexOf(name) : primaryKey.length);
  return pairs.sort((a, b) => keyPlace(a) - keyPlace(b));
}

/** Chosen by the kind that the column has at the source. */
export function formOf(source: Field, destination: Field): Form {
  const [from, to] = [kindOfField(source), kindOfField(destination)];
  if (from === to && String(source.type) === String(destination.type)) {
    return from !== 'json' || sameSourceType(source, destination) ? 'as-is' : 'json';
  }
  if (from === 'json' || to === 'json') return 'json';
  if (isExact(from) || isExact(to)) return 'number';
  if (from === 'float32' || from === 'float64') return 'double';
  if (from === 'timestamp' || from === 'timestamptz') return to === from ? 'instant' : 'text';
  if (isBytes(from) && isBytes(to)) return 'bytes';
  return 'text';
}

/** Two texts of one type were written by the same hand; those of json and jsonb differ in spaces and in the order of keys. */
function sameSourceType(source: Field, destination: Field): boolean {
  const type = source.metadata.get(METADATA.sourceType);
  return type !== undefined && type === destination.metadata.get(METADATA.sourceType);
}

function kindOfField({ type, metadata }: Field): Kind {
  return kindOf(type, metadata.get('ARROW:extension:name'));
}

function isExact(kind: Kind): boolean {
  return kind === 'int32' || kind === 'int64' || kind === 'uint64' || kind.startsWith('decimal');
}

function isBytes(kind: Kind): boolean {
  return kind === 'binary' || kind.startsWith('fixed');
}

function lacks(table: string, columns: readonly string[], remedy: string): UrutauError {
  const text = columns.length === 1 ? `column ${columns[0]}` : `columns ${columns.join(', ')}`;
  return new UrutauError('schema-unsupported', `${table} has no ${text}`, { table, remedy });
}

import { Binary, type DataType, Field, Schema, Struct, TimestampNanosecond, Type, Utf8 } from 'apache-arrow';
import { kindOf } from './kinds.ts';
import { METADATA } from './registry.ts';
import { UrutauError } from './urutau-error.ts';

/** The names of a change record's columns in their order (CHG-2). `before` may be left out. */
export const CHANGE_COLUMNS = ['op', 'before', 'after', 'offset', 'ts_source'] as const;

/** What the before-image of a table holds. */
export type BeforeImage = 'none' | 'key' | 'full';

/** A table's rows as both sides see them. `fields` carry the metadata of SCH-3. */
export interface TableShape {
  fields: Field[];
  /** Column names in key order; empty when the table has no key. */
  primaryKey: string[];
  before: BeforeImage;
  schemaId?: string;
}

/** The schema of a changes stream for rows of this shape. */
export function changeSchema(shape: TableShape): Schema {
  const row = new Struct(shape.fields);
  const fields = [
    new Field('op', new Utf8(), false),
    ...(shape.before === 'none' ? [] : [new Field('before', row, true)]),
    new Field('after', row, true),
    new Field('offset', new Binary(), false),
    new Field('ts_source', new TimestampNanosecond('UTC'), true),
  ];
  return new Schema(fields, shapeMetadata(shape));
}

/** The schema of the rows alone, with the same metadata: what `urutau.ensure` and a base snapshot carry. */
export function rowSchema(shape: TableShape): Schema {
  return new Schema(shape.fields, shapeMetadata(shape));
}

/** Reads a changes schema back; throws a protocol-violation that names the first field out of place (CHG-3). */
export function shapeOfChanges(schema: Schema, table: string): TableShape {
  const names = schema.fields.map(({ name }) => name);
  const hasBefore = names[1] === 'before';
  const expected = CHANGE_COLUMNS.filter((name) => name !== 'before' || hasBefore);
  if (names.join() !== expected.join()) {
    throw violation(table, `columns ${expected.join(', ')}`, names.join(', '));
  }
  for (const [index, { name, type, nullable }] of schema.fields.entries()) {
    const problem = columnProblem(expected[index]!, type, nullable);
    if (problem) throw violation(table, `column ${name}: ${problem}`, `${type}${nullable ? ', nullable' : ''}`);
  }
  const after = schema.fields[names.indexOf('after')]!.type as Struct;
  const before = schema.metadata.get(METADATA.before) as BeforeImage | undefined;
  return {
    ...shapeOfRows(new Schema(after.children, schema.metadata)),
    before: hasBefore ? (before ?? 'key') : 'none',
  };
}

/** Reads the shape out of a row schema. Throws `type-unsupported` for a type that is not allowed (TYP-2). */
export function shapeOfRows(schema: Schema): TableShape {
  for (const field of schema.fields) refuseForeignTypes(field, field.name);
  const key = schema.metadata.get(METADATA.primaryKey);
  const schemaId = schema.metadata.get(METADATA.schemaId);
  return {
    fields: schema.fields,
    primaryKey: key ? JSON.parse(key) : [],
    before: (schema.metadata.get(METADATA.before) as BeforeImage | undefined) ?? 'none',
    ...(schemaId === undefined ? {} : { schemaId }),
  };
}

function shapeMetadata({ primaryKey, before, schemaId }: TableShape): Map<string, string> {
  const metadata = new Map<string, string>([[METADATA.before, before]]);
  if (primaryKey.length > 0) metadata.set(METADATA.primaryKey, JSON.stringify(primaryKey));
  if (schemaId !== undefined) metadata.set(METADATA.schemaId, schemaId);
  return metadata;
}

function columnProblem(column: (typeof CHANGE_COLUMNS)[number], type: DataType, nullable: boolean): string | null {
  switch (column) {
    case 'op':
      return type.typeId === Type.Utf8 && !nullable ? null : 'Utf8 and not nullable';
    case 'before':
    case 'after':
      return type.typeId === Type.Struct && nullable ? null : 'a nullable Struct';
    case 'offset':
      return type.typeId === Type.Binary && !nullable ? null : 'Binary and not nullable';
    case 'ts_source': {
      const { unit, timezone } = type as unknown as { unit: number; timezone?: string };
      const right = type.typeId === Type.Timestamp && unit === 3 && timezone === 'UTC' && nullable;
      return right ? null : 'a nullable Timestamp(ns, UTC)';
    }
  }
}

function refuseForeignTypes(field: Field, path: string): void {
  try {
    kindOf(field.type, field.metadata.get('ARROW:extension:name'));
  } catch (cause) {
    throw new UrutauError('type-unsupported', `column ${path}: ${(cause as Error).message}`, { cause, column: path });
  }
  for (const child of field.type.children ?? []) refuseForeignTypes(child, `${path}.${child.name}`);
}

function violation(table: string, expected: string, came: string): UrutauError {
  return new UrutauError('protocol-violation', `changes of ${table}: expected ${expected}; came ${came}`, { table });
}

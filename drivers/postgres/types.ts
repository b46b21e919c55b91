import { arrowTypeOf, type Kind, METADATA, UrutauError } from '@urutau/sdk';
import { Field } from 'apache-arrow';

/** One row of pg_type, as far as it decides the kind. */
export interface TypeFacts {
  /** pg_type.oid */
  oid: number;
  /** atttypmod, or typtypmod where the type is the base of a domain; -1 for none. */
  typmod: number;
  /** pg_type.typname */
  name: string;
  /** pg_type.typtype: b(ase), c(omposite), d(omain), e(num), p(seudo), r(ange), m(ultirange). */
  type: string;
  /** pg_type.typcategory */
  category: string;
}

/** What the catalog says of a column. */
export interface ColumnFacts extends TypeFacts {
  column: string;
  /** The type that a domain stands on in the end, through domains over domains; null where the type is no domain. */
  base: TypeFacts | null;
  /** format_type(atttypid, atttypmod) */
  formatted: string;
  /** attnotnull */
  notNull: boolean;
  /** Part of the table's key. */
  key: boolean;
}

export interface SupportedType {
  kind: Kind;
  /** The server's own text of the type, for `urutau.source_type`. */
  sourceType: string;
  /** Oid of the type or of a domain's base: with `kind` it decides the binary form. */
  baseOid: number;
  /** The binary form cannot give the value that the stream shows, so COPY must select the column as `column::text`. */
  copyAsText: boolean;
}

export interface UnsupportedType {
  unsupported: string;
  remedy: string;
}

/** The kind of a column, or why there is none. */
export function typeOf(column: ColumnFacts): SupportedType | UnsupportedType {
  const type = column.base ?? column;
  const kind = kindOfType(type);
  if (kind === null) return unsupported(column, type);
  const copyAsText = type.oid === OID.money || type.oid === OID.char;
  return { kind, sourceType: column.formatted, baseOid: type.oid, copyAsText };
}

/** The column on the wire. Throws `type-unsupported` with the remedy where it has no kind. */
export function fieldFor(column: ColumnFacts): Field {
  const type = typeOf(column);
  if ('unsupported' in type) {
    throw new UrutauError('type-unsupported', type.unsupported, { column: column.column, remedy: type.remedy });
  }
  const metadata = new Map<string, string>([
    [METADATA.kind, type.kind],
    [METADATA.sourceType, type.sourceType],
  ]);
  if (column.notNull) metadata.set(METADATA.notNull, 'true');
  if (type.kind === 'uuid' || type.kind === 'json') metadata.set('ARROW:extension:name', `arrow.${type.kind}`);
  return new Field(column.column, arrowTypeOf(type.kind), !column.key, metadata);
}

/** Oids that the server fixes for its own types. */
export const OID = {
  bool: 16,
  bytea: 17,
  char: 18,
  name: 19,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  oid: 26,
  json: 114,
  float4: 700,
  float8: 701,
  money: 790,
  bpchar: 1042,
  varchar: 1043,
  date: 1082,
  time: 1083,
  timestamp: 1114,
  timestamptz: 1184,
  numeric: 1700,
  uuid: 2950,
  jsonb: 3802,
} as const;

const DECIMAL_PRECISION_MAX = 38;

function kindOfType({ oid, typmod, name, type, category }: TypeFacts): Kind | null {
  switch (oid) {
    case OID.bool:
      return 'bool';
    case OID.int2:
    case OID.int4:
      return 'int32';
    case OID.int8:
      return 'int64';
    case OID.oid:
      return 'uint64';
    case OID.float4:
      return 'float32';
    case OID.float8:
      return 'float64';
    case OID.numeric:
      return numericKind(typmod);
    case OID.char:
    case OID.name:
    case OID.text:
    case OID.bpchar:
    case OID.varchar:
    case OID.money:
      return 'string';
    case OID.bytea:
      return 'binary';
    case OID.date:
      return 'date';
    case OID.time:
      return 'time';
    case OID.timestamp:
      return 'timestamp';
    case OID.timestamptz:
      return 'timestamptz';
    case OID.uuid:
      return 'uuid';
    case OID.json:
    case OID.jsonb:
      return 'json';
    default:
      return type === 'e' || (name === 'citext' && category === 'S') ? 'string' : null;
  }
}

/** typmod of numeric(p,s): 4 more than p in the upper half and s in eleven bits with a sign. */
function numericKind(typmod: number): Kind {
  if (typmod < 4) return 'string';
  const precision = ((typmod - 4) >> 16) & 0xffff;
  const scale = (((typmod - 4) & 0x7ff) ^ 0x400) - 0x400;
  const fits = precision <= DECIMAL_PRECISION_MAX && scale >= 0 && scale <= precision;
  return fits ? `decimal(${precision},${scale})` : 'string';
}

function unsupported({ column, formatted }: ColumnFacts, type: TypeFacts): UnsupportedType {
  return {
    unsupported: `column ${column}: ${classOf(type)} ${formatted} is not supported yet`,
    remedy: 'Change its type, for example to text, or take the table out of the pipeline file.',
  };
}

function classOf({ type, category }: TypeFacts): string {
  if (category === 'A') return 'the array type';
  switch (type) {
    case 'c':
      return 'the composite type';
    case 'r':
      return 'the range type';
    case 'm':
      return 'the multirange type';
    default:
      return 'the type';
  }
}

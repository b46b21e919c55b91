import {
  Binary,
  Bool,
  type DataType,
  DateDay,
  DateUnit,
  Decimal,
  FixedSizeBinary,
  Float32,
  Float64,
  Int32,
  Int64,
  Precision,
  TimeMicrosecond,
  TimestampMicrosecond,
  TimeUnit,
  Type,
  Uint64,
  Utf8,
} from 'apache-arrow';
import { UrutauError } from './urutau-error.ts';

/** The canonical kinds of scalar columns. `decimal` and `fixed` carry their parameters in the Arrow type. */
export type Kind =
  | 'bool'
  | 'int32'
  | 'int64'
  | 'uint64'
  | 'float32'
  | 'float64'
  | `decimal(${number},${number})`
  | 'string'
  | 'binary'
  | `fixed(${number})`
  | 'date'
  | 'time'
  | 'timestamp'
  | 'timestamptz'
  | 'uuid'
  | 'json'
  | 'struct'
  | 'list'
  | 'map';

export const UUID_BYTES = 16;

/** The Arrow type that a kind has on the wire (TYP-1). */
export function arrowTypeOf(kind: Kind): DataType {
  switch (kind) {
    case 'bool':
      return new Bool();
    case 'int32':
      return new Int32();
    case 'int64':
      return new Int64();
    case 'uint64':
      return new Uint64();
    case 'float32':
      return new Float32();
    case 'float64':
      return new Float64();
    case 'string':
    case 'json':
      return new Utf8();
    case 'binary':
      return new Binary();
    case 'date':
      return new DateDay();
    case 'time':
      return new TimeMicrosecond();
    case 'timestamp':
      return new TimestampMicrosecond();
    case 'timestamptz':
      return new TimestampMicrosecond('UTC');
    case 'uuid':
      return new FixedSizeBinary(UUID_BYTES);
    case 'struct':
    case 'list':
    case 'map':
      throw new UrutauError('type-unsupported', `kind ${kind} has no Arrow type without its children`);
    default:
      return parametric(kind);
  }
}

function parametric(kind: `decimal(${number},${number})` | `fixed(${number})`): DataType {
  const decimal = /^decimal\((\d+),(\d+)\)$/.exec(kind);
  if (decimal) {
    const precision = Number(decimal[1]);
    return new Decimal(Number(decimal[2]), precision, precision <= 38 ? 128 : 256);
  }
  return new FixedSizeBinary(Number(/\d+/.exec(kind)![0]));
}

/** The kind that a column has by its Arrow type alone, for drivers that send no `urutau.kind`. */
export function kindOf(type: DataType, extension?: string): Kind {
  switch (type.typeId) {
    case Type.Bool:
      return 'bool';
    case Type.Int: {
      const { bitWidth, isSigned } = type as unknown as { bitWidth: number; isSigned: boolean };
      if (bitWidth < 32 || (bitWidth === 32 && isSigned)) return 'int32';
      return bitWidth === 32 || isSigned ? 'int64' : 'uint64';
    }
    case Type.Float: {
      const { precision } = type as unknown as { precision: Precision };
      if (precision === Precision.HALF) break;
      return precision === Precision.SINGLE ? 'float32' : 'float64';
    }
    case Type.Decimal: {
      const { precision, scale } = type as unknown as { precision: number; scale: number };
      return `decimal(${precision},${scale})`;
    }
    case Type.Utf8:
    case Type.LargeUtf8:
      return extension === 'arrow.json' ? 'json' : 'string';
    case Type.Binary:
    case Type.LargeBinary:
      return 'binary';
    case Type.FixedSizeBinary: {
      const { byteWidth } = type as unknown as { byteWidth: number };
      return extension === 'arrow.uuid' && byteWidth === UUID_BYTES ? 'uuid' : `fixed(${byteWidth})`;
    }
    case Type.Date:
      if ((type as unknown as { unit: DateUnit }).unit !== DateUnit.DAY) break;
      return 'date';
    case Type.Time:
      if ((type as unknown as { unit: TimeUnit }).unit !== TimeUnit.MICROSECOND) break;
      return 'time';
    case Type.Timestamp:
      return (type as unknown as { timezone?: string | null }).timezone ? 'timestamptz' : 'timestamp';
    case Type.Struct:
      return 'struct';
    case Type.List:
      return 'list';
    case Type.Map:
      return 'map';
  }
  throw new UrutauError('type-unsupported', `Arrow type ${type} is not allowed on the wire (TYP-2)`);
}

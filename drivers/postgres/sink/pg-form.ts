/** The binary forms in which a field may be written. `text` is that of every type whose binary form is its text. */
export type PgForm =
  | 'bool'
  | 'int2'
  | 'int4'
  | 'int8'
  | 'oid'
  | 'float4'
  | 'float8'
  | 'numeric'
  | 'text'
  | 'jsonb'
  | 'bytea'
  | 'uuid'
  | 'date'
  | 'time'
  | 'timestamp';

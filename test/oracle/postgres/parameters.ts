import type { ColumnKind, OracleTable } from '../tables.ts';

/** An instant goes as whole microseconds. */
export const PARAMETER_TYPES: Record<ColumnKind, string> = {
  integer: 'bigint',
  text: 'text',
  decimal: 'numeric',
  instant: 'bigint',
  boolean: 'boolean',
  float: 'double precision',
  payload: 'text',
};

/** The parameter with this index from 0, with its type. */
export function parameter(index: number, kind: ColumnKind): string {
  return `$${index + 1}::${PARAMETER_TYPES[kind]}`;
}

/** A condition on the key, whose parameters come after so many others. */
export function keyIs({ key }: OracleTable, before: number): string {
  return key.map(({ name, kind }, index) => `${name} = ${parameter(before + index, kind)}`).join(' and ');
}

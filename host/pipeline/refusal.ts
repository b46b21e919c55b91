import type { UrutauError } from '@urutau/contract';

/** Why a sink does not take a row. */
export interface Refusal {
  code: string;
  reason: string;
}

/** A row of a write stream that the sink does not take. */
export interface RefusedRow extends Refusal {
  seq: number | undefined;
  row: number | undefined;
}

/** True where a row is to blame, and not the sink. */
export function isRefusal({ code }: Pick<UrutauError, 'code'>): boolean {
  return code === 'row-refused' || code === 'row-too-large';
}

/** The rows that an error names (ERR-4); none where it is no refusal. The sink says of the first one alone why. */
export function refusedRows(error: UrutauError): RefusedRow[] {
  if (!isRefusal(error)) return [];
  const { code, message, context } = error;
  const { seq, row, more = [] } = context;
  return [{ seq, row, code, reason: message }, ...more.map(([seq, row]) => ({ seq, row, code, reason: ALSO_REFUSED }))];
}

const ALSO_REFUSED = 'the target refuses it, as it does another row of the same commit, of which it told why';

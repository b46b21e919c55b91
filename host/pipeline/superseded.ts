import { UrutauError } from '@urutau/contract';

/** Another run of the same pipeline writes this table now. */
export function superseded(table: string, writer: string, cause?: unknown): UrutauError {
  return new UrutauError('superseded', `another run of the pipeline ${writer} has taken over ${table}`, {
    table,
    cause,
  });
}

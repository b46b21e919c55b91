import { LIMIT, UrutauError } from '@urutau/sdk';

/** A value that its column's kind cannot hold. `came` names its class, such as NaN, and never the value itself. */
export function refusedValue(column: string, expected: string, came: string): UrutauError {
  return new UrutauError('row-refused', `column ${column}: expected ${expected}; came ${came}`, {
    column,
    remedy: 'Correct the row at the source, then run `urutau-host table resume`.',
  });
}

/** A value of more bytes than any message may have. */
export function largeValue(column: string, bytes: number): UrutauError {
  return new UrutauError(
    'row-too-large',
    `column ${column}: expected a value of at most ${LIMIT.messageBytesMax} bytes; came ${bytes}`,
    { column, remedy: 'Shorten the value at the source, then run `urutau-host table resume`.' },
  );
}

/** Room for the columns' own overhead beside the row's values in one message. */
export const CHANGE_BYTES_MAX = LIMIT.messageBytesMax - (1 << 18);

/** A change whose values are too many bytes together. */
export function largeChange(bytes: number): UrutauError {
  return new UrutauError(
    'row-too-large',
    `expected a change of at most ${CHANGE_BYTES_MAX} bytes; came one of ${bytes}`,
  );
}

/** The error of a change, with its table and the row's key, as `keyText` gives it; empty when the key is not known. */
export function withPlace(error: unknown, table: string, key: string): UrutauError {
  const { code, message, remedy, context } =
    error instanceof UrutauError ? error : new UrutauError('internal', (error as Error).message, { cause: error });
  const place = key === '' ? table : `${table}, row ${key}`;
  return new UrutauError(code, `${place}: ${message}`, {
    cause: error,
    remedy: code === 'row-refused' || code === 'row-too-large' ? IN_THE_LOG : remedy,
    ...context,
    table,
    ...(key === '' ? {} : { key }),
  });
}

/** A correction is a further change: it does not take the refused one out of the log. */
const IN_THE_LOG =
  'The log keeps this change whatever becomes of the row: correct the row at the source, then run `urutau-host table resync`.';

/** Bytes that are no value of the column's type at all: the column is not what the catalog said. */
export function malformedValue(column: string, expected: string, came: string): UrutauError {
  return new UrutauError('protocol-violation', `column ${column}: expected ${expected}; came ${came}`, {
    column,
    remedy: 'The server sent another form than this driver knows; report it with the server version.',
  });
}

export const EXPECTED = {
  decimal: (precision: number, scale: number) =>
    `a number of at most ${precision} digits, ${scale} of them after the point`,
  date: 'a finite date',
  time: 'a time of day before 24:00:00',
  timestamp: 'a finite time before 294247-01-10 04:00:54.775808 UTC',
} as const;

import { LIMIT, UrutauError } from '@urutau/sdk';

/** A value that its column's kind cannot hold. `came` names its class, such as NaN, and never the value itself. */
export function refusedValue(column: string, expected: string, came: string): UrutauError {
  return new UrutauError('row-refused', `column ${column}: expected ${expected}; came ${came}`, {
    column,
    remedy:
      'Correct the row at the source, or let `onInvalid` decide about such values; then run `urutau-host table resume`.',
  });
}

/** A value of more bytes than any message may have. */
export function largeValue(column: string, bytes: number): UrutauError {
  return new UrutauError(
    'row-too-large',
    `column ${column}: expected a value of at most ${LIMIT.messageBytesMax} bytes; came ${bytes}`,
    { column },
  );
}

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

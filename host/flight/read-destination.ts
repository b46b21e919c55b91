import { UrutauError } from '@urutau/contract';
import type { FlightClient } from './client.ts';
import { type RowPicture, readRows } from './read-rows.ts';

/** As `readRows`, by the reader of a sink's destination (PKG-6): what fails is told of the destination. */
export async function readDestination(
  reader: FlightClient,
  target: string,
  options: Parameters<typeof readRows>[2] = {},
): Promise<RowPicture> {
  try {
    const picture = await readRows(reader, target, options);
    return {
      ...picture,
      async *batches() {
        try {
          yield* picture.batches();
        } catch (error) {
          throw ofDestination(error);
        }
      },
    };
  } catch (error) {
    throw ofDestination(error);
  }
}

/** A reader is a source to its own mind: what it cannot reach, or may not send, is the destination's. */
export function ofDestination(error: unknown): unknown {
  if (!(error instanceof UrutauError)) return error;
  const { code, message, remedy, context } = error;
  const options = { ...context, cause: error };
  const says = `the destination, read back: ${message}`;
  switch (code) {
    case 'source-unavailable':
      return new UrutauError('sink-unavailable', says, options);
    case 'row-refused':
    case 'row-too-large':
      return new UrutauError(code, says, { ...options, remedy: OF_A_ROW });
    default:
      return new UrutauError(code, says, { ...options, remedy });
  }
}

const OF_A_ROW =
  'A source row is never written so: correct or delete the row in the destination, or run `urutau-host table resync`.';

import { UrutauError } from '@urutau/contract';
import type { FlightClient } from '../../flight/client.ts';
import { readDestination } from '../../flight/read-destination.ts';
import type { RowPicture } from '../../flight/read-rows.ts';
import { type DeadLetter, lettersIn } from './dead-letter.ts';

/** The dead letters of one table as they are stored now, in any order; none where their table is not there yet. */
export async function* deadLettersOf(
  reader: FlightClient,
  deadLetters: string,
  { pipeline, target }: { pipeline: string; target: string },
): AsyncGenerator<DeadLetter, void> {
  const picture = await readDestination(reader, deadLetters).catch((error: unknown) => {
    if (error instanceof UrutauError && error.code === 'table-not-found') return null;
    throw error;
  });
  if (picture === null) return;
  for await (const letter of lettersOf(picture)) {
    if (letter.pipeline === pipeline && letter.target === target) yield letter;
  }
}

async function* lettersOf(picture: RowPicture): AsyncGenerator<DeadLetter, void> {
  for await (const rows of picture.batches()) yield* lettersIn(rows);
}

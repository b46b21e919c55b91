/** A row as one read of one side saw it; null when it was not there. */
export type Image = {
  readonly first: number;
  readonly second: number;
  /** Names the version of the row: another one whenever the row was written. Null where the driver names none. */
  readonly version: number | null;
} | null;

export const DIFFERENCES = ['missing', 'extra', 'different', 'duplicated'] as const;
export type Difference = (typeof DIFFERENCES)[number];
export type Verdict = Exclude<Difference, 'duplicated'> | 'look-again' | 'equal';

/*
 * Whether two rows that did not look alike differ indeed, while both sides change. The sides are read in turn, the source
 * first, and the destination each time after it had passed the position of the source's read. A row that stands still on one side
 * between two reads makes it certain what the other side had to show in between.
 *
 * A row stands still when its version is the same; an absent row has none, so the other side's counts then. Where neither side
 * names versions the same image must do, and a row that goes back and forth between two states may look still.
 */

/** After the source's second read: it stood still, so the destination, read in between, had to show the same. */
export function judgeBySource(source: Image, destination: Image, sourceAgain: Image): Verdict {
  const certain = versionOf(source) !== null || versionOf(destination) === null;
  return certain && standsStill(source, sourceAgain) ? classOf(source, destination) : 'look-again';
}

/** After the destination's second read: it stood still, so what it shows is not newer than the source's read in between. */
export function judgeByDestination(destination: Image, source: Image, destinationAgain: Image): Verdict {
  if (sameImage(source, destinationAgain)) return 'equal';
  const certain = versionOf(destination) !== null;
  return certain && standsStill(destination, destinationAgain) ? classOf(source, destinationAgain) : 'look-again';
}

export function sameImage(a: Image, b: Image): boolean {
  if (a === null || b === null) return a === b;
  return a.first === b.first && a.second === b.second;
}

function standsStill(a: Image, b: Image): boolean {
  return sameImage(a, b) && versionOf(a) === versionOf(b);
}

function versionOf(image: Image): number | null {
  return image?.version ?? null;
}

function classOf(source: Image, destination: Image): Verdict {
  if (sameImage(source, destination)) return 'equal';
  if (destination === null) return 'missing';
  return source === null ? 'extra' : 'different';
}

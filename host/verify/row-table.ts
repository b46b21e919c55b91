import type { Image } from './judge.ts';

const FIRST_SLOTS = 1024;
/** Words of a slot: both halves of the key, then for each side state, both halves of the row, its version; the last look. */
const WORDS = 11;
const SOURCE = 2;
const DESTINATION = 6;
const SEEN = 10;

/** States of an image; a slot that was never taken has none. */
const ABSENT = 1;
const PRESENT = 2;
const VERSIONED = 3;
/** In the place of the source's state: nothing is to be found out about the row any more, and its key may have come twice. */
const CLOSED = 4;
const DUPLICATED = 5;

/** Rows by the hash of their key, 44 bytes for each, as integers: half a million of them are no objects. */
export class RowTable {
  #words = new Int32Array(FIRST_SLOTS * WORDS);
  #slots = FIRST_SLOTS;
  /** Rows that were put in. */
  size = 0;
  /** Those of them that are not closed. */
  open = 0;

  /** The place of a row that was ever put in, or -1. A place is good until the next `put`. */
  find(first: number, second: number): number {
    const slot = this.#slotOf(first, second);
    return this.#words[slot + SOURCE] === 0 ? -1 : slot;
  }

  isOpen(slot: number): boolean {
    const state = this.#words[slot + SOURCE]!;
    return state !== 0 && state < CLOSED;
  }

  /** The same for the same row, whatever its place. */
  name(slot: number): string {
    return `${this.#words[slot]},${this.#words[slot + 1]}`;
  }

  /** Puts a row in that may not be there yet; both images are absent. */
  put(first: number, second: number): number {
    if (2 * (this.size + 1) > this.#slots) this.#grow();
    const slot = this.#slotOf(first, second);
    if (this.#words[slot + SOURCE] === 0) {
      this.size++;
      this.open++;
    }
    this.#words[slot] = first;
    this.#words[slot + 1] = second;
    this.#words[slot + SOURCE] = ABSENT;
    this.#words[slot + DESTINATION] = ABSENT;
    return slot;
  }

  source(slot: number): Image {
    return this.#image(slot + SOURCE);
  }

  destination(slot: number): Image {
    return this.#image(slot + DESTINATION);
  }

  setSource(slot: number, image: Image): void {
    this.#setImage(slot + SOURCE, image);
  }

  setDestination(slot: number, image: Image): void {
    this.#setImage(slot + DESTINATION, image);
  }

  /** Marks that the row came in a read; false when it had come in it already. Reads are numbered from 1. */
  see(slot: number, read: number): boolean {
    if (this.#words[slot + SEEN] === read) return false;
    this.#words[slot + SEEN] = read;
    return true;
  }

  seen(slot: number, read: number): boolean {
    return this.#words[slot + SEEN] === read;
  }

  /** Closes a row that is open. */
  close(slot: number): void {
    this.#words[slot + SOURCE] = CLOSED;
    this.open--;
  }

  /** Notes of a row that is closed that two rows have its key; false when that was known. */
  duplicate(slot: number): boolean {
    if (this.#words[slot + SOURCE] === DUPLICATED) return false;
    this.#words[slot + SOURCE] = DUPLICATED;
    return true;
  }

  /** The places of all open rows. */
  *openSlots(): Generator<number, void> {
    for (let slot = 0; slot < this.#words.length; slot += WORDS) {
      if (this.isOpen(slot)) yield slot;
    }
  }

  #image(at: number): Image {
    const words = this.#words;
    const state = words[at]!;
    if (state === ABSENT) return null;
    return { first: words[at + 1]!, second: words[at + 2]!, version: state === VERSIONED ? words[at + 3]! : null };
  }

  #setImage(at: number, image: Image): void {
    const words = this.#words;
    words[at] = image === null ? ABSENT : image.version === null ? PRESENT : VERSIONED;
    words[at + 1] = image?.first ?? 0;
    words[at + 2] = image?.second ?? 0;
    words[at + 3] = image?.version ?? 0;
  }

  /** The row's slot, or the empty one where it would be put. */
  #slotOf(first: number, second: number): number {
    const words = this.#words;
    // The first half chose the bucket; within few buckets only the second one spreads.
    for (let index = second & (this.#slots - 1); ; index = (index + 1) & (this.#slots - 1)) {
      const slot = index * WORDS;
      if (words[slot + SOURCE] === 0 || (words[slot] === first && words[slot + 1] === second)) return slot;
    }
  }

  #grow(): void {
    const old = this.#words;
    this.#slots *= 2;
    this.#words = new Int32Array(this.#slots * WORDS);
    for (let slot = 0; slot < old.length; slot += WORDS) {
      if (old[slot + SOURCE] === 0) continue;
      this.#words.set(old.subarray(slot, slot + WORDS), this.#slotOf(old[slot]!, old[slot + 1]!));
    }
  }
}

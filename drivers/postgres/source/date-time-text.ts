/** Reads dates and times as the server prints them under DateStyle ISO. The fields hold what was read last. */
export class DateTimeText {
  /** Days since 1970-01-01, proleptic Gregorian. */
  days = 0;
  /** Microseconds since midnight, of the zone below. */
  micros = 0;
  /** East of UTC. */
  zoneSeconds = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;

  /** `2024-02-29`, `12024-02-29`, `0044-03-15 BC`. False when it is something else. */
  readDate(bytes: Uint8Array, start: number, length: number): boolean {
    const era = this.#open(bytes, start, length);
    return this.#date(era) && this.#at === this.#end;
  }

  /** `23:59:59`, with up to six digits of a fraction. */
  readTime(bytes: Uint8Array, start: number, length: number): boolean {
    this.#open(bytes, start, length);
    return this.#time() && this.#at === this.#end;
  }

  /** A date, a space and a time; the era at the end. */
  readTimestamp(bytes: Uint8Array, start: number, length: number): boolean {
    const era = this.#open(bytes, start, length);
    return this.#date(era) && this.#skip(SPACE) && this.#time() && this.#at === this.#end;
  }

  /** As `readTimestamp`, with a zone before the era: `+00`, `+05:30`, `-03:30:15`. */
  readTimestamptz(bytes: Uint8Array, start: number, length: number): boolean {
    const era = this.#open(bytes, start, length);
    return this.#date(era) && this.#skip(SPACE) && this.#time() && this.#zone() && this.#at === this.#end;
  }

  #open(bytes: Uint8Array, start: number, length: number): 'AD' | 'BC' {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = start + length;
    if (length < 3 || bytes[this.#end - 1] !== LETTER_C || bytes[this.#end - 2] !== LETTER_B) return 'AD';
    this.#end -= 3;
    return 'BC';
  }

  #date(era: 'AD' | 'BC'): boolean {
    const year = this.#number();
    if (!this.#skip(MINUS)) return false;
    const month = this.#number();
    if (!this.#skip(MINUS)) return false;
    const day = this.#number();
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31) return false;
    this.days = daysFromCivil(era === 'BC' ? 1 - year : year, month, day);
    return true;
  }

  #time(): boolean {
    const hours = this.#number();
    if (!this.#skip(COLON)) return false;
    const minutes = this.#number();
    if (!this.#skip(COLON)) return false;
    const seconds = this.#number();
    if (hours < 0 || minutes < 0 || seconds < 0) return false;
    this.micros = (hours * 3600 + minutes * 60 + seconds) * 1_000_000;
    return this.#skip(POINT) ? this.#fraction() : true;
  }

  #fraction(): boolean {
    const from = this.#at;
    const fraction = this.#number();
    const missing = 6 - (this.#at - from);
    if (fraction < 0 || missing < 0) return false;
    this.micros += fraction * UNITS[missing]!;
    return true;
  }

  #zone(): boolean {
    const west = this.#bytes[this.#at] === MINUS;
    if (!this.#skip(west ? MINUS : PLUS)) return false;
    const hours = this.#number();
    const minutes = this.#skip(COLON) ? this.#number() : 0;
    const seconds = this.#skip(COLON) ? this.#number() : 0;
    if (hours < 0 || minutes < 0 || seconds < 0) return false;
    const away = hours * 3600 + minutes * 60 + seconds;
    this.zoneSeconds = west ? -away : away;
    return true;
  }

  /** A run of digits; -1 when there is none. */
  #number(): number {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = this.#at;
    let value = 0;
    for (; at < end; at++) {
      const digit = bytes[at]! - ZERO;
      if (digit >>> 0 > 9) break;
      value = value * 10 + digit;
    }
    if (at === this.#at) return -1;
    this.#at = at;
    return value;
  }

  #skip(byte: number): boolean {
    if (this.#at >= this.#end || this.#bytes[this.#at] !== byte) return false;
    this.#at++;
    return true;
  }
}

/** Microseconds of a unit in the last place of a fraction, by the digits that it lacks. */
const UNITS = [1, 10, 100, 1_000, 10_000, 100_000];

const SPACE = 0x20;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const LETTER_B = 0x42;
const LETTER_C = 0x43;

const DAYS_PER_ERA = 146_097;
/** From 0000-03-01 to 1970-01-01. */
const DAYS_TO_EPOCH = 719_468;

/** Years are counted from March, so that the leap day is the last of its year; 400 of them make an era. */
function daysFromCivil(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const monthFromMarch = month <= 2 ? month + 9 : month - 3;
  const dayOfYear = (((153 * monthFromMarch + 2) / 5) | 0) + day - 1;
  const dayOfEra = yearOfEra * 365 + (yearOfEra >> 2) - ((yearOfEra / 100) | 0) + dayOfYear;
  return era * DAYS_PER_ERA + dayOfEra - DAYS_TO_EPOCH;
}

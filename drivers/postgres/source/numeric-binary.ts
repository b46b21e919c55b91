/**
 * Reads the binary form of numeric: groups of four decimal digits, the first of which counts 10000^weight. `read` lays
 * it over the bytes; the others answer about what was read last.
 */
export class NumericBinary {
  /** A value that is no number; null for any other. */
  special: 'NaN' | 'Infinity' | '-Infinity' | null = null;
  #bytes: Uint8Array = new Uint8Array(0);
  #groupsAt = 0;
  #groups = 0;
  #weight = 0;
  #negative = false;
  #scale = 0;
  #text = new Uint8Array(64);

  /** False when the bytes are no numeric. */
  read(bytes: Uint8Array, start: number, length: number): boolean {
    if (length < HEADER_BYTES) return false;
    const groups = uint16At(bytes, start);
    if (length !== HEADER_BYTES + 2 * groups) return false;
    this.#bytes = bytes;
    this.#groupsAt = start + HEADER_BYTES;
    this.#groups = groups;
    this.#weight = (uint16At(bytes, start + 2) << 16) >> 16;
    this.#scale = uint16At(bytes, start + 6);
    return this.#readSign(uint16At(bytes, start + 4));
  }

  /** The value × 10^scale, when that is an integer of at most 15 digits; undefined when it is not, or may not be. */
  unscaledNumber(scale: number): number | undefined {
    const groups = this.#groups;
    if (groups === 0) return 0;
    if (4 * (this.#weight + 1) + scale > EXACT_DIGITS) return undefined;
    const at = this.#groupsAt;
    let head = 0;
    for (let i = 0; i < groups - 1; i++) head = head * 10_000 + uint16At(this.#bytes, at + 2 * i);
    const last = uint16At(this.#bytes, at + 2 * (groups - 1));
    /** Decimal places by which the last group stands left of the scale. */
    const shift = 4 * (this.#weight - groups + 1) + scale;
    if (shift < -3) return undefined;
    const value = shift >= 0 ? (head * 10_000 + last) * 10 ** shift : head * 10 ** (4 + shift) + last / 10 ** -shift;
    if (!Number.isInteger(value)) return undefined;
    return this.#negative ? -value : value;
  }

  /** The value × 10^scale; undefined when that is no integer. */
  unscaledBigInt(scale: number): bigint | undefined {
    let value = 0n;
    for (let i = 0; i < this.#groups; i++) value = value * 10_000n + BigInt(this.#group(i));
    const shift = 4 * (this.#weight - this.#groups + 1) + scale;
    if (shift < 0) {
      const divisor = 10n ** BigInt(-shift);
      if (value % divisor !== 0n) return undefined;
      value /= divisor;
    } else {
      value *= 10n ** BigInt(shift);
    }
    return this.#negative ? -value : value;
  }

  /** The text that the server prints, with as many digits after the point as the value was given; until the next call. */
  text(): Uint8Array {
    if (this.special !== null) return SPECIAL_TEXT[this.special];
    const integerGroups = Math.max(this.#weight + 1, 1);
    this.#reserve(1 + 4 * integerGroups + 1 + this.#scale + 4);
    const text = this.#text;
    let at = 0;
    if (this.#negative) text[at++] = MINUS;
    const first = at;
    for (let i = this.#weight - integerGroups + 1; i <= this.#weight; i++) at = this.#writeGroup(i, at);
    at = withoutLeadingZeros(text, first, at);
    if (this.#scale === 0) return text.subarray(0, at);
    text[at++] = POINT;
    const end = at + this.#scale;
    for (let i = this.#weight + 1; at < end; i++) at = this.#writeGroup(i, at);
    return text.subarray(0, end);
  }

  #readSign(sign: number): boolean {
    this.#negative = sign === SIGN.negative;
    this.special = null;
    switch (sign) {
      case SIGN.positive:
      case SIGN.negative:
        return true;
      case SIGN.nan:
        this.special = 'NaN';
        return true;
      case SIGN.infinity:
        this.special = 'Infinity';
        return true;
      case SIGN.negativeInfinity:
        this.special = '-Infinity';
        return true;
      default:
        return false;
    }
  }

  /** Group `index` after the first; zero outside of what was sent. */
  #group(index: number): number {
    return index >= 0 && index < this.#groups ? uint16At(this.#bytes, this.#groupsAt + 2 * index) : 0;
  }

  #reserve(bytes: number): void {
    if (this.#text.length < bytes) this.#text = new Uint8Array(2 * bytes);
  }

  #writeGroup(index: number, at: number): number {
    const group = this.#group(index);
    this.#text[at] = ZERO + ((group / 1000) | 0);
    this.#text[at + 1] = ZERO + (((group / 100) | 0) % 10);
    this.#text[at + 2] = ZERO + (((group / 10) | 0) % 10);
    this.#text[at + 3] = ZERO + (group % 10);
    return at + 4;
  }
}

const HEADER_BYTES = 8;
const EXACT_DIGITS = 15;
const SIGN = { positive: 0x0000, negative: 0x4000, nan: 0xc000, infinity: 0xd000, negativeInfinity: 0xf000 } as const;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;

const SPECIAL_TEXT = {
  NaN: Buffer.from('NaN'),
  Infinity: Buffer.from('Infinity'),
  '-Infinity': Buffer.from('-Infinity'),
};

function uint16At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** Moves the digits together; keeps one. The new end. */
function withoutLeadingZeros(text: Uint8Array, from: number, end: number): number {
  let digit = from;
  while (digit < end - 1 && text[digit] === ZERO) digit++;
  text.copyWithin(from, digit, end);
  return end - (digit - from);
}

import { latin1 } from './latin1.ts';

/**
 * The double nearest to a decimal text; `undefined` when the text is no number. Numbers without an exponent and of at
 * most 17 digits, all that the server prints of the usual sizes, are read without making a string.
 */
export function readDouble(bytes: Uint8Array, start: number, length: number): number | undefined {
  const end = start + length;
  const negative = bytes[start] === MINUS;
  const first = negative ? start + 1 : start;
  let high = 0; // The first nine significant digits, and the rest.
  let low = 0;
  let significant = 0;
  let point = -1;
  for (let at = first; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit >>> 0 <= 9) {
      if (significant < HIGH_DIGITS) high = high * 10 + digit;
      else low = low * 10 + digit;
      if (significant > 0 || digit > 0) significant++;
    } else if (bytes[at] === POINT && point < 0 && at > first) {
      point = at + 1;
    } else {
      return readDoubleFromString(bytes, start, length);
    }
  }
  const fraction = point < 0 ? 0 : end - point;
  if (first === end || point === end || significant > DIGITS_MAX || fraction > EXACT_POWER_MAX) {
    return readDoubleFromString(bytes, start, length);
  }
  const value =
    significant <= HIGH_DIGITS
      ? high / POWERS[fraction]!
      : quotient(high * POWERS[significant - HIGH_DIGITS]!, low, POWERS[fraction]!);
  return value === undefined ? readDoubleFromString(bytes, start, length) : negative ? -value : value;
}

/** As `readDouble`, rounded to a float as the server did, and not a second time from the double. */
export function readFloat(bytes: Uint8Array, start: number, length: number): number | undefined {
  const double = readDouble(bytes, start, length);
  if (double === undefined || !Number.isFinite(double)) return double;
  const magnitude = Math.abs(double);
  const below = Math.fround(magnitude * (1 - Number.EPSILON));
  const above = Math.fround(magnitude * (1 + Number.EPSILON));
  if (below === above) return Math.fround(double);
  // The double may lie right in the middle of two floats and the text beside it.
  const middle = (below + above) / 2;
  const order = compareToDouble(latin1(bytes, start, length), middle);
  const nearest = order === 0 ? Math.fround(middle) : order < 0 ? below : above;
  return double < 0 ? -nearest : nearest;
}

const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;

const HIGH_DIGITS = 9;
/** Nine digits × 10^8 are still exact in a double: 10^8 is 5^8 (19 bits) and a power of two. */
const DIGITS_MAX = HIGH_DIGITS + 8;
/** The last power of ten that a double holds exactly. */
const EXACT_POWER_MAX = 22;
const POWERS = Float64Array.from({ length: EXACT_POWER_MAX + 1 }, (_, power) => Number(`1e${power}`));

/** Splits a double into two halves whose products are exact. */
const SPLITTER = 134_217_729;

/**
 * (high + low) / divisor, rounded once: the quotient of the rounded sum, corrected by the exact remainder. Undefined in
 * the rare case that the remainder does not decide. `high` must be zero or the larger, and all three be exact.
 */
function quotient(high: number, low: number, divisor: number): number | undefined {
  const sum = high + low;
  const lost = low - (sum - high);
  const first = sum / divisor;
  const product = first * divisor;
  const firstScaled = first * SPLITTER;
  const firstHigh = firstScaled - (firstScaled - first);
  const firstLow = first - firstHigh;
  const divisorScaled = divisor * SPLITTER;
  const divisorHigh = divisorScaled - (divisorScaled - divisor);
  const divisorLow = divisor - divisorHigh;
  const productLost =
    firstHigh * divisorHigh - product + firstHigh * divisorLow + firstLow * divisorHigh + firstLow * divisorLow;
  const correction = (sum - product - productLost + lost) / divisor;
  const doubt = first * 2 ** -93;
  const least = first + (correction - doubt);
  return least === first + (correction + doubt) ? least : undefined;
}

function readDoubleFromString(bytes: Uint8Array, start: number, length: number): number | undefined {
  const text = latin1(bytes, start, length);
  if (SPECIAL.has(text)) return Number(text);
  return NUMBER.test(text) ? Number(text) : undefined;
}

const SPECIAL = new Set(['NaN', 'Infinity', '-Infinity']);
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;

/** Orders the magnitude of a decimal text and a double that is a multiple of 2^-150, the half of the least float. */
function compareToDouble(text: string, double: number): -1 | 0 | 1 {
  const [, integer = '', fraction = '', exponent = '0'] = /^-?(\d+)\.?(\d*)(?:e(.+))?$/.exec(text)!;
  const power = Number(exponent) - fraction.length;
  const decimal = BigInt(integer + fraction) * 10n ** BigInt(Math.max(power, 0)) * 2n ** 150n;
  const binary = BigInt(double * 2 ** 150) * 10n ** BigInt(Math.max(-power, 0));
  return decimal < binary ? -1 : decimal > binary ? 1 : 0;
}

/** A decimal with all the places of its scale; exact. */
export function decimalText(unscaled: bigint, scale: number): string {
  if (scale <= 0) return String(unscaled * 10n ** BigInt(-scale));
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/**
 * A day of the proleptic Gregorian calendar, counted from 1970-01-01. A year below 1 has a minus sign, and the year before
 * 1 is 0.
 */
export function dayText(day: bigint): string {
  // Eras of 400 years, which begin in March so that a leap day is the last of its year.
  const shifted = day + 719_468n;
  const era = floorDiv(shifted, 146_097n);
  const ofEra = shifted - era * 146_097n;
  const yearOfEra = (ofEra - ofEra / 1_460n + ofEra / 36_524n - ofEra / 146_096n) / 365n;
  const ofYear = ofEra - (365n * yearOfEra + yearOfEra / 4n - yearOfEra / 100n);
  const fromMarch = (5n * ofYear + 2n) / 153n;
  const dayOfMonth = ofYear - (153n * fromMarch + 2n) / 5n + 1n;
  const month = fromMarch < 10n ? fromMarch + 3n : fromMarch - 9n;
  const year = yearOfEra + era * 400n + (month <= 2n ? 1n : 0n);
  const digits = String(year < 0n ? -year : year).padStart(4, '0');
  return `${year < 0n ? '-' : ''}${digits}-${String(month).padStart(2, '0')}-${String(dayOfMonth).padStart(2, '0')}`;
}

/** The 32 digits of a uuid with its dashes. */
export function uuidText(digits: string): string {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}

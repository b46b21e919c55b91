const SECONDS_PER_DAY = 86_400;
const TWO_DIGITS = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, '0'));

/** Units since 1970 as `2026-11-30T10:00:00.123456`; the fraction is exact and ends with its last digit that is not 0. */
export function timestampText(value: bigint, unitsPerSecond: bigint): string {
  const units = Number(unitsPerSecond);
  const perDay = SECONDS_PER_DAY * units;
  const number = Number(value);
  let days: number;
  let ofDay: number;
  if (Number.isSafeInteger(number)) {
    days = Math.floor(number / perDay);
    ofDay = number - days * perDay;
    // The division rounds, and just before midnight it may round up to the next day.
    if (ofDay < 0) {
      days--;
      ofDay += perDay;
    }
  } else {
    const rest = value % BigInt(perDay);
    const exact = rest < 0n ? rest + BigInt(perDay) : rest;
    days = Number((value - exact) / BigInt(perDay));
    ofDay = Number(exact);
  }
  return `${dateText(days)}T${timeText(ofDay, units)}`;
}

/** Days since 1970-01-01 in the Gregorian calendar; years outside 0 to 9999 in ISO 8601's extended form, `+010000-01-01`. */
export function dateText(days: number): string {
  // The civil-from-days algorithm: years begin in March, so that the leap day is the last of its year.
  const sinceYear0 = days + 719_468;
  const era = Math.floor(sinceYear0 / 146_097);
  const dayOfEra = sinceYear0 - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${yearText(year)}-${TWO_DIGITS[month]}-${TWO_DIGITS[day]}`;
}

/** Units since midnight as `10:00:00.123456`; the end of a day is `24:00:00`. */
export function timeText(ofDay: number, unitsPerSecond: number): string {
  const seconds = Math.floor(ofDay / unitsPerSecond);
  const fraction = ofDay - seconds * unitsPerSecond;
  const minutes = Math.floor(seconds / 60);
  const whole = `${TWO_DIGITS[Math.floor(minutes / 60)]}:${TWO_DIGITS[minutes % 60]}:${TWO_DIGITS[seconds % 60]}`;
  return fraction === 0
    ? whole
    : `${whole}.${String(unitsPerSecond + fraction)
        .slice(1)
        .replace(/0+$/, '')}`;
}

function yearText(year: number): string {
  if (year >= 0 && year <= 9999) return String(year).padStart(4, '0');
  return `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(6, '0')}`;
}

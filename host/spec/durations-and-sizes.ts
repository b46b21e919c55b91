/** `250ms`, `5s`, `10m`, `168h`: a whole number, more than zero, with its unit. */
export const DURATION_PATTERN = /^([1-9]\d{0,15})(ms|s|m|h)$/;

/** `1048576`, `64Mi`, `1Gi`: bytes, more than zero, plain or with a binary unit. */
export const SIZE_PATTERN = /^([1-9]\d{0,15})(Ki|Mi|Gi|Ti)?$/;

/** Milliseconds; undefined when the text is no duration or a JS number cannot hold it. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  return unit === undefined ? undefined : exact(Number(count) * DURATION_UNITS[unit as keyof typeof DURATION_UNITS]);
}

/** Bytes; undefined when the value is no size or a JS number cannot hold it. */
export function parseSize(value: string | number): number | undefined {
  const [, count, unit] = SIZE_PATTERN.exec(String(value)) ?? [];
  if (count === undefined) return undefined;
  return exact(Number(count) * (unit === undefined ? 1 : SIZE_UNITS[unit as keyof typeof SIZE_UNITS]));
}

/** The shortest exact text: 90000 is `90s`, 3600000 is `1h`. */
export function formatDuration(ms: number): string {
  const [unit, factor] = Object.entries(DURATION_UNITS).findLast(([, factor]) => ms !== 0 && ms % factor === 0) ?? [
    'ms',
    1,
  ];
  return `${ms / factor}${unit}`;
}

/** The shortest exact text: 67108864 is `64Mi`, 1000 is `1000`. */
export function formatSize(bytes: number): string {
  const [unit, factor] = Object.entries(SIZE_UNITS).findLast(([, factor]) => bytes !== 0 && bytes % factor === 0) ?? [
    '',
    1,
  ];
  return `${bytes / factor}${unit}`;
}

// Both in rising order: the formatters take the last that divides.
const DURATION_UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const SIZE_UNITS = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 } as const;

// Beyond 2^53 neighbours fall together; a product below it is exact.
function exact(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined;
}

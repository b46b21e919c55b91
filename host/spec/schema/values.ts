import { LIMIT } from '@urutau/contract';
import { z } from 'zod';
import { DURATION_PATTERN, parseDuration, parseSize, SIZE_PATTERN } from '../durations-and-sizes.ts';

// In every schema below the `error` says what was expected; check-schema.ts builds the sentence around it.

export function text(description: string) {
  return z.string({ error: 'text' }).describe(description);
}

/** Text that is not empty and has no more than `lengthMax` characters. */
export function name(description: string, { lengthMax = 256 }: { lengthMax?: number } = {}) {
  const error = `text of 1 to ${lengthMax} characters`;
  return z.string({ error }).min(1, { error }).max(lengthMax, { error }).describe(description);
}

/** A table's name, which the contract limits in bytes of UTF-8. */
export function tableName(description: string) {
  const error = `text of 1 to ${LIMIT.tableNameBytesMax} bytes`;
  const fits = (text: string) => Buffer.byteLength(text) <= LIMIT.tableNameBytesMax;
  return z.string({ error }).min(1, { error }).refine(fits, { error }).describe(description);
}

export function matching(description: string, pattern: RegExp, expected: string) {
  return z.string({ error: expected }).regex(pattern, { error: expected }).describe(description);
}

export function whole(description: string, { min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number }) {
  const error =
    max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error }).describe(description);
}

export function flag(description: string) {
  return z.boolean({ error: 'true or false' }).describe(description);
}

export function oneOf<const T extends readonly [string, ...string[]]>(description: string, values: T) {
  return z.enum(values, { error: `one of ${values.join(', ')}` }).describe(description);
}

export function duration(description: string) {
  return durationUpTo(
    description,
    Number.MAX_SAFE_INTEGER,
    'a duration such as 250ms, 5s, 10m or 168h, more than zero',
  );
}

/** A duration that a timer waits for: a longer one would fire at once. */
export function wait(description: string) {
  return durationUpTo(description, 2 ** 31 - 1, 'a duration such as 250ms, 5s or 10m, more than zero and at most 596h');
}

function durationUpTo(description: string, msMax: number, error: string) {
  return z
    .string({ error })
    .regex(DURATION_PATTERN, { error })
    .refine((value) => (parseDuration(value) ?? Number.POSITIVE_INFINITY) <= msMax, { error })
    .describe(description);
}

export function size(description: string) {
  const error = 'a size such as 1048576, 64Mi or 1Gi, more than zero and below 8192Ti';
  return z
    .union([z.int({ error }).min(1, { error }), z.string({ error }).regex(SIZE_PATTERN, { error })], { error })
    .refine((value) => parseSize(value) !== undefined, { error })
    .describe(description);
}

export function list<T extends z.ZodType>(description: string, item: T) {
  return z.array(item, { error: 'a list' }).describe(description);
}

export function mapOf<T extends z.ZodType>(description: string, value: T) {
  return z.record(z.string(), value, { error: 'a map' }).describe(description);
}

/** A block with known fields only; those of `required` must be there. */
export function block<O extends z.ZodRawShape, R extends z.ZodRawShape = Record<never, never>>(
  description: string,
  optional: O,
  required: R = {} as R,
) {
  const fields = z.object(optional).partial().shape;
  return z.strictObject({ ...required, ...fields }, { error: 'a map' }).describe(description);
}

import type { Path } from '../path.ts';
import type { Finding } from '../problem.ts';
import type { Rule } from './rule.ts';

/** A driver's config is JSON: an integer beyond 2^53 would arrive as another one. */
export const exactNumbers: Rule = function* ({ file }) {
  yield* within(file.source?.config, ['source', 'config']);
  yield* within(file.sink?.config, ['sink', 'config']);
};

function* within(value: unknown, path: Path): Iterable<Finding> {
  if (typeof value === 'bigint') {
    yield {
      path,
      what: 'a whole number beyond 2^53 cannot be passed on exactly',
      remedy: 'write it as text, in quotes',
    };
  } else if (typeof value === 'object' && value !== null) {
    const steps = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
    for (const [step, field] of steps) yield* within(field, [...path, step]);
  }
}

import { parseDuration } from '../durations-and-sizes.ts';
import type { Rule } from './rule.ts';

/** A pause that starts above its own limit would never double. */
export const supervision: Rule = function* ({ file }) {
  const { first = '1s', max = '60s' } = file.supervision?.backoff ?? {};
  if (parseDuration(first)! <= parseDuration(max)!) return;
  yield {
    path: ['supervision', 'backoff', 'max'],
    what: `expected at least first (${first}), came ${max}`,
    remedy: 'raise max or lower first',
  };
};

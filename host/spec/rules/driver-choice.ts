import { SOURCE_KINDS } from '../schema/source.ts';
import type { Rule } from './rule.ts';

/** Rule 1: each side names a built-in kind or an external driver, and not both. */
export const driverChoice: Rule = function* ({ file, source }) {
  const exclusive = {
    what: 'a built-in kind and an external driver exclude each other',
    remedy: 'keep one of the two',
  };
  if (file.source?.kind !== undefined && file.source.driver !== undefined) {
    yield { path: ['source', 'driver'], atKey: true, ...exclusive };
  }
  if (file.sink?.type !== undefined && file.sink.driver !== undefined) {
    yield { path: ['sink', 'driver'], atKey: true, ...exclusive };
  }
  if (source === undefined) {
    const what = 'is missing, expected a built-in kind or an external driver';
    yield { path: ['source', 'kind'], what, remedy: `add kind (${SOURCE_KINDS.join(', ')}) or driver` };
  }
};

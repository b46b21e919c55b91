import type { Path } from '../path.ts';
import type { Finding } from '../problem.ts';
import { empty } from './rule.ts';

/** A client certificate and its key come together. */
export function* clientCertificate(block: { cert?: string; key?: string } | undefined, at: Path): Iterable<Finding> {
  if (block === undefined || empty(block.cert) === empty(block.key)) return;
  const [given, absent] = empty(block.cert) ? ['key', 'cert'] : ['cert', 'key'];
  yield { path: [...at, absent], what: `is missing, expected beside ${given}`, remedy: `add it, or remove ${given}` };
}

import { parseDuration } from '../durations-and-sizes.ts';
import type { Finding } from '../problem.ts';
import type { SinkType } from '../schema/sink.ts';
import { clientCertificate } from './client-certificate.ts';
import { empty, type Rule, tablesOf } from './rule.ts';

const NEEDS_URI: readonly SinkType[] = ['iceberg+rest', 'clickhouse', 'couchbase', 'postgres', 'kafka'];
const ORPHAN_AGE_MS_MIN = 3_600_000;

/** Rule 5. */
export const sink: Rule = function* ({ file, sink: type, show }) {
  const block = file.sink ?? {};
  if (NEEDS_URI.some((needs) => needs === type) && empty(block.uri)) {
    yield {
      path: ['sink', 'uri'],
      what: `is missing, ${type} needs an address`,
      remedy: 'add it, or set URUTAU_SINK_URI',
    };
  }
  if (type === 'iceberg+local' && empty(block.uri) && empty(block.warehouse)) {
    yield { path: ['sink', 'warehouse'], what: 'is missing, expected the folder of the warehouse', remedy: 'add it' };
  }
  if (type === 'postgres' && !empty(block.uri) && !/^postgres(ql)?:\/\//.test(block.uri!)) {
    const what = 'expected an address that begins with postgres:// or postgresql://, came another scheme or none';
    yield { path: ['sink', 'uri'], what, remedy: 'correct the address' };
  }
  if (block.namespace?.split('.').includes('')) {
    const what = `expected parts that are not empty, came ${show(['sink', 'namespace'])}`;
    yield { path: ['sink', 'namespace'], what, remedy: 'remove the dot too many, or the field' };
  }
  yield* clientCertificate(block.tls, ['sink', 'tls']);
  if (type === 'iceberg+rest' || type === 'iceberg+local') yield* namespaces(file, block.namespace);
  const olderThan = block.maintenance?.orphanCleanup?.olderThan;
  if (olderThan !== undefined && (parseDuration(olderThan) ?? ORPHAN_AGE_MS_MIN) < ORPHAN_AGE_MS_MIN) {
    const path = ['sink', 'maintenance', 'orphanCleanup', 'olderThan'];
    yield {
      path,
      what: `expected at least 1h, came ${show(path)}: a younger file may belong to a commit under way`,
      remedy: 'write 1h or more',
    };
  }
};

function* namespaces(file: Parameters<typeof tablesOf>[0], namespace: string | undefined): Iterable<Finding> {
  if (namespace !== undefined) return;
  for (const { table, at } of tablesOf(file)) {
    if (table.target === undefined || table.target.includes('.')) continue;
    yield {
      path: [...at, 'target'],
      what: 'an Iceberg table lies in a namespace, and none is named',
      remedy: 'write namespace.table, or set sink.namespace',
    };
  }
}

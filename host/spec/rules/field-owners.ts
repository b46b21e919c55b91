import type { SinkType } from '../schema/sink.ts';
import type { SourceKind } from '../schema/source.ts';
import type { Rule } from './rule.ts';

const MYSQL = ['mysql', 'mariadb'] as const;
const DATABASES = ['postgres', ...MYSQL] as const;
const ICEBERG = ['iceberg+rest', 'iceberg+local'] as const;

/** Which kinds a field belongs to. A field that is not listed belongs to all. */
export const FIELD_OWNERS: {
  readonly source: Readonly<Record<string, readonly (SourceKind | 'external')[]>>;
  readonly sink: Readonly<Record<string, readonly (SinkType | 'external')[]>>;
} = {
  source: {
    config: ['external'],
    uri: [...DATABASES, 'kafka'],
    snapshotUri: DATABASES,
    serverId: MYSQL,
    slotName: ['postgres'],
    postgres: ['postgres'],
    maxReconnectAttempts: [...DATABASES, 'kafka'],
    groupId: ['kafka'],
    partitionedByPrimaryKey: ['kafka'],
    format: ['kafka'],
    schemaRegistry: ['kafka'],
    onDecodeError: ['kafka'],
    kafka: ['kafka'],
    onTruncate: [...DATABASES, 'external'],
  },
  sink: {
    config: ['external'],
    uri: [...ICEBERG, 'clickhouse', 'couchbase', 'postgres', 'kafka'],
    warehouse: ICEBERG,
    clientId: ['iceberg+rest'],
    clientSecret: ['iceberg+rest'],
    scope: ['iceberg+rest'],
    commitMode: ['couchbase'],
    evolveSchema: ICEBERG,
    deleteMode: ICEBERG,
    formatVersion: ICEBERG,
    maintenance: ICEBERG,
    tls: ['clickhouse', 'couchbase', 'kafka'],
    tablePrefix: [...ICEBERG, 'postgres', 'clickhouse', 'kafka'],
    discard: ['stdout'],
  },
};

/** Rules 3, 4 and 5: a field of another kind would be read by nobody. */
export const fieldOwners: Rule = function* ({ file, source, sink }) {
  for (const [side, kind] of [
    ['source', source],
    ['sink', sink],
  ] as const) {
    if (kind === undefined) continue;
    for (const field of Object.keys(file[side] ?? {})) {
      const owners: readonly string[] | undefined = FIELD_OWNERS[side][field];
      if (owners === undefined || owners.includes(kind)) continue;
      yield {
        path: [side, field],
        atKey: true,
        what: `belongs to ${owners.map(named).join(', ')}, not to ${named(kind)}`,
        remedy: kind === 'external' ? 'move it into the config block' : 'remove it',
      };
    }
  }
};

function named(kind: string): string {
  return kind === 'external' ? 'an external driver' : kind;
}

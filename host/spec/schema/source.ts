import { z } from 'zod';
import { block, flag, list, mapOf, matching, name, oneOf, text, wait, whole } from './values.ts';

export const SOURCE_KINDS = ['postgres', 'mysql', 'mariadb', 'kafka'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** What a table does when its source is truncated. */
export const ON_TRUNCATE = ['apply', 'ignore', 'fail'] as const;

/** `./folder`, `/folder`, or the name of an installed driver with or without `@version`. */
export function driver(description: string) {
  return matching(
    description,
    /^(\.{1,2}$|\.{0,2}\/.*|@?[a-z0-9][a-z0-9._/-]*(@[0-9A-Za-z.+-]+)?)$/,
    'a path that begins with "./", "../" or "/", or the name of an installed driver such as name@1.2',
  );
}

export function tls(description: string) {
  return block(description, {
    ca: text('Certificate of the authority that signed the server’s certificate.'),
    cert: text('Client certificate; needs the key.'),
    key: text('Key of the client certificate.'),
  });
}

const sasl = block('SASL log-in; all three fields.', {
  mechanism: oneOf('How the password is proven.', ['plain', 'scram-sha-256', 'scram-sha-512']),
  username: text('User.'),
  password: text('Password.'),
});

const kafka = block('Connection to Kafka.', { tls: tls('Encrypted connection.'), sasl });

const ssl = block('Encrypted connection.', {
  mode: oneOf('How far the server is checked.', ['disable', 'require', 'verify-ca', 'verify-full']),
  ca: text('Certificate of the authority; needed for verify-ca and verify-full.'),
  cert: text('Client certificate; needs the key.'),
  key: text('Key of the client certificate.'),
});

const ssh = block('Connection through an SSH server.', {
  host: text('Host of the SSH server.'),
  port: whole('Port of the SSH server, default 22.', { min: 1, max: 65_535 }),
  username: text('User on the SSH server.'),
  password: text('Password; exclusive with privateKey.'),
  privateKey: text('Private key; exclusive with password.'),
  passphrase: text('Passphrase of the private key.'),
  knownHosts: text('Known hosts file, against which the server is checked.'),
});

const publication = block('The publication that the slot reads.', {
  name: name('Name of the publication.', { lengthMax: 63 }),
  create: z
    .union([z.literal(true), z.literal('existing')], { error: 'true or existing' })
    .describe('true makes and keeps the publication (default); existing uses one that is there and never changes it.'),
});

const postgres = block('Connection to Postgres in parts, and what is particular to it.', {
  host: text('Bare host name or address.'),
  port: whole('Port, default 5432.', { min: 1, max: 65_535 }),
  database: text('Database.'),
  username: text('User.'),
  password: text('Password.'),
  params: mapOf('Further connection parameters.', text('Value.')),
  ssl,
  ssh,
  maxThreads: whole('Connections that read a snapshot at once.', { min: 1, max: 32 }),
  retryCount: whole('How often a failed read is tried again, default 3.', { min: 0 }),
  schemas: list('Schemas in which tables are discovered.', text('Schema.')),
  discover: flag('Takes every table of the schemas instead of a list.'),
  replicaIdentity: oneOf('keep (default) leaves tables as they are; full sets REPLICA IDENTITY FULL.', [
    'keep',
    'full',
  ]),
  publication,
  heartbeat: wait('Between two writes that move the slot of an idle database on, default 10s.'),
  cdc: block('Reading of the log.', {
    plugin: oneOf('Output plugin of the slot, default pgoutput.', ['pgoutput', 'wal2json']),
    initialWaitTime: whole('Seconds to wait for the first change.', { min: 30 }),
  }),
});

export const source = block('Where rows come from.', {
  kind: oneOf('A built-in source driver.', SOURCE_KINDS),
  driver: driver('An external source driver: its folder, or the name of an installed one.'),
  config: mapOf('Configuration of the external driver, passed on as it is.', z.unknown()),
  uri: text('Address of the source.'),
  snapshotUri: text('Address of a replica from which snapshots are read.'),
  serverId: whole('MySQL: the number that this reader takes among the replicas.', { min: 0, max: 2 ** 32 - 1 }),
  slotName: text('Postgres: the replication slot.'),
  snapshotMode: oneOf('initial (default) copies the tables first; none only follows changes.', ['initial', 'none']),
  maxReconnectAttempts: whole('How often a lost connection is opened again, default 3.', { min: 0 }),
  groupId: text('Kafka: the consumer group.'),
  partitionedByPrimaryKey: flag('Kafka: all messages of one key are in one partition.'),
  format: oneOf('Kafka: what a message holds.', ['debezium', 'raw', 'avro']),
  schemaRegistry: text('Kafka: address of the schema registry; needed for avro.'),
  onDecodeError: oneOf('Kafka: what to do with a message that cannot be read.', ['fail', 'skip']),
  onTruncate: oneOf('What a table does when the source is truncated, default fail.', ON_TRUNCATE),
  kafka,
  postgres,
});

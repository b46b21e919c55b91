// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import { expect, test } from 'vitest';
import { loadPipeline } from '../../../../host/spec/load.ts';
import { SpecError } from '../../../../host/spec/problem.ts';

/** Blocks of a pipeline file that take the place of the valid ones; `text` takes the place of the whole file. */
interface Given {
  pipeline?: string;
  source?: string;
  sink?: string;
  tables?: string;
  more?: string;
  text?: string;
}

const VALID = {
  pipeline: 'pipeline: p',
  source: 'source: {kind: postgres, uri: "postgres://h/d", slotName: s}',
  sink: 'sink: {type: stdout}',
  tables: 'tables: [{source: public.a, target: a}]',
  more: '',
};

const BREACHES: [sentence: string, given: Given, ...lines: string[]][] = [
  // Quarantine
  [
    'quarantine needs a destination that can be read back',
    { tables: 'tables: [{source: public.a, target: a, onPoison: quarantine}]' },
    'p.yaml:4:50: tables[0].onPoison: quarantine needs a destination that can be read back, which stdout is not; write pause or stop',
  ],
  [
    'quarantine needs a key that tells which changes follow a refused row',
    {
      sink: 'sink: {type: postgres, uri: "postgres://h/e"}',
      tables: 'tables: [{source: public.a, target: a, writeMode: append, onPoison: quarantine}]',
    },
    'p.yaml:4:69: tables[0].onPoison: quarantine needs writeMode: upsert: a row that is set aside is followed by its key, and a history would lose its order; write pause or stop, or use upsert',
  ],
  [
    'the table of the dead letters is no target',
    {
      sink: 'sink: {type: postgres, uri: "postgres://h/e"}',
      tables: 'tables: [{source: public.a, target: urutau_dead_letters, onPoison: quarantine}]',
    },
    'p.yaml:4:37: tables[0].target: is the table of the dead letters; name another target',
  ],
  [
    'the table of the dead letters is no target of another table either',
    {
      sink: 'sink: {type: postgres, uri: "postgres://h/e"}',
      tables:
        'tables: [{source: public.a, target: a, onPoison: quarantine}, {source: public.b, target: urutau_dead_letters}]',
    },
    'p.yaml:4:90: tables[1].target: is the table of the dead letters; name another target',
  ],
  // Rule 1: drivers and fields
  [
    'a pipeline has a name',
    { pipeline: '' },
    'p.yaml:1:1: pipeline: is missing, expected a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter or digit; add it',
  ],
  [
    'a name of a pipeline cannot leave its folder',
    { pipeline: 'pipeline: ../p' },
    'p.yaml:1:11: pipeline: expected a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter or digit, came "../p"; correct the value',
  ],
  [
    'a source has a kind or a driver',
    { source: 'source: {}' },
    'p.yaml:2:1: source.kind: is missing, expected a built-in kind or an external driver; add kind (postgres, mysql, mariadb, kafka) or driver',
  ],
  [
    'a kind of source is known',
    { source: 'source: {kind: postgre, uri: "postgres://h/d", slotName: s}' },
    'p.yaml:2:16: source.kind: expected one of postgres, mysql, mariadb, kafka, came "postgre"; did you mean "postgres"?',
  ],
  [
    'a type of sink is known',
    { sink: 'sink: {type: stdotu}' },
    'p.yaml:3:14: sink.type: expected one of iceberg+rest, iceberg+local, clickhouse, couchbase, postgres, kafka, stdout, came "stdotu"; did you mean "stdout"?',
  ],
  [
    'a sink has a type where a source has a kind',
    { sink: 'sink: {kind: stdout}' },
    'p.yaml:3:8: sink.kind: unknown field; did you mean "type"?',
  ],
  [
    'a kind and a driver exclude each other',
    { source: 'source: {kind: postgres, driver: ./d, uri: "postgres://h/d", slotName: s}' },
    'p.yaml:2:26: source.driver: a built-in kind and an external driver exclude each other; keep one of the two',
  ],
  [
    'a driver is a path or a name',
    { source: 'source: {driver: "my driver"}' },
    'p.yaml:2:18: source.driver: expected a path that begins with "./", "../" or "/", or the name of an installed driver such as name@1.2, came "my driver"; correct the value',
  ],
  [
    'fields of a built-in kind do not stand beside an external driver',
    { source: 'source: {driver: ./d, uri: "postgres://h/d"}' },
    'p.yaml:2:23: source.uri: belongs to postgres, mysql, mariadb, kafka, not to an external driver; move it into the config block',
  ],
  [
    'a built-in kind has no config block',
    { sink: 'sink: {type: stdout, config: {a: 1}}' },
    'p.yaml:3:22: sink.config: belongs to an external driver, not to stdout; remove it',
  ],
  [
    'a whole number beyond 2^53 is not passed on as another one',
    { source: 'source: {driver: ./d, config: {ids: [9007199254740993]}}' },
    'p.yaml:2:38: source.config.ids[0]: a whole number beyond 2^53 cannot be passed on exactly; write it as text, in quotes',
  ],
  [
    'an unknown field names the nearest known one',
    { more: 'supervison: {misses: 3}' },
    'p.yaml:5:1: supervison: unknown field; did you mean "supervision"?',
  ],
  [
    'an unknown field far from all others names them',
    { more: 'store: {colour: red}' },
    'p.yaml:5:9: store.colour: unknown field; remove it, or use one of kind, path',
  ],
  // Rule 2: numbers and MySQL
  [
    'serverId fits uint32',
    { source: 'source: {kind: mysql, uri: "mysql://h/d", serverId: 4294967296}' },
    'p.yaml:2:53: source.serverId: expected a whole number from 0 to 4294967295, came 4294967296; correct the value',
  ],
  [
    'a count is not negative',
    { source: 'source: {kind: mysql, uri: "mysql://h/d", maxReconnectAttempts: -1}' },
    'p.yaml:2:65: source.maxReconnectAttempts: expected a whole number of at least 0, came -1; correct the value',
  ],
  [
    'maxThreads ends at 32',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, maxThreads: 33}`,
    },
    'p.yaml:5:48: source.postgres.maxThreads: expected a whole number from 1 to 32, came 33; correct the value',
  ],
  [
    'a port is at least 1',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, port: 0}`,
    },
    'p.yaml:5:42: source.postgres.port: expected a whole number from 1 to 65535, came 0; correct the value',
  ],
  [
    'a MySQL source has an address',
    { source: 'source: {kind: mysql}' },
    'p.yaml:2:1: source.uri: is missing, expected an address such as mysql://host:3306/db; add it, or set URUTAU_SOURCE_URI',
  ],
  [
    'a MySQL address has the scheme of MySQL',
    { source: 'source: {kind: mariadb, uri: "postgres://u:hunter2@h/d"}' },
    'p.yaml:2:30: source.uri: expected an address that begins with mysql:// or mariadb://, came another scheme or none; correct the address',
  ],
  [
    'a parameter of a MySQL address is known',
    { source: 'source: {kind: mysql, uri: "mysql://u:hunter2@h/d?ssl-caa=x"}' },
    'p.yaml:2:28: source.uri: the address has an unknown parameter; did you mean "ssl-ca"?',
  ],
  [
    'a TLS mode of a MySQL address is known',
    { source: 'source: {kind: mysql, uri: "mysql://h/d?tls=maybe"}' },
    'p.yaml:2:28: source.uri: expected tls to be one of true, verify-ca, verify-full, skip-verify, false, came something else; correct the parameter',
  ],
  [
    'a client certificate in a MySQL address has its key',
    { source: 'source: {kind: mysql, uri: "mysql://h/d?ssl-cert=c"}' },
    'p.yaml:2:28: source.uri: ssl-cert and ssl-key come together; add the other, or remove both',
  ],
  // Rule 3: Kafka
  [
    'a Kafka source takes no snapshot',
    {
      source: 'source: {kind: kafka, uri: "h:9092", snapshotMode: initial}',
      tables: 'tables: [{source: a, target: a, writeMode: append, onDelete: skip}]',
    },
    'p.yaml:2:52: source.snapshotMode: expected none, came "initial": a topic has no snapshot; write none',
  ],
  [
    'a Kafka source has an address',
    { source: 'source: {kind: kafka}', tables: 'tables: [{source: a, target: a, writeMode: append, onDelete: skip}]' },
    'p.yaml:2:1: source.uri: is missing, expected the addresses of the brokers; add it, or set URUTAU_SOURCE_URI',
  ],
  [
    'format belongs to Kafka',
    { source: 'source: {kind: postgres, uri: "postgres://h/d", slotName: s, format: raw}' },
    'p.yaml:2:62: source.format: belongs to kafka, not to postgres; remove it',
  ],
  [
    'onDecodeError belongs to Kafka',
    { source: 'source: {kind: mysql, uri: "mysql://h/d", onDecodeError: skip}' },
    'p.yaml:2:43: source.onDecodeError: belongs to kafka, not to mysql; remove it',
  ],
  [
    'the kafka block belongs to Kafka',
    { source: 'source: {kind: mysql, uri: "mysql://h/d", kafka: {}}' },
    'p.yaml:2:43: source.kafka: belongs to kafka, not to mysql; remove it',
  ],
  [
    'avro needs a schema registry',
    {
      source: 'source: {kind: kafka, uri: "h:9092", format: avro}',
      tables: 'tables: [{source: a, target: a, writeMode: append, onDelete: skip}]',
    },
    'p.yaml:2:1: source.schemaRegistry: is missing, avro cannot be read without it; add its address',
  ],
  [
    'a Kafka client certificate has its key',
    {
      source: 'source: {kind: kafka, uri: "h:9092", kafka: {tls: {cert: c}}}',
      tables: 'tables: [{source: a, target: a, writeMode: append, onDelete: skip}]',
    },
    'p.yaml:2:46: source.kafka.tls.key: is missing, expected beside cert; add it, or remove cert',
  ],
  [
    'SASL needs all three fields',
    {
      source: 'source: {kind: kafka, uri: "h:9092", kafka: {sasl: {mechanism: plain, username: u}}}',
      tables: 'tables: [{source: a, target: a, writeMode: append, onDelete: skip}]',
    },
    'p.yaml:2:46: source.kafka.sasl.password: is missing, SASL needs mechanism, username and password; add it',
  ],
  [
    'raw messages are appended only',
    {
      source: 'source: {kind: kafka, uri: "h:9092", format: raw, partitionedByPrimaryKey: true}',
      tables: `tables:
  - {source: a, target: a, primaryKey: [id]}`,
    },
    'p.yaml:5:5: tables[0].writeMode: raw messages have no operation, so upsert is not possible; write writeMode: append',
  ],
  [
    'upsert from Kafka needs partitions by key',
    {
      source: 'source: {kind: kafka, uri: "h:9092", groupId: g}',
      tables: `tables:
  - {source: a, target: a, primaryKey: [id]}`,
    },
    'p.yaml:5:5: tables[0].writeMode: upsert needs all messages of one key in one partition; set source.partitionedByPrimaryKey: true where that is so, or write writeMode: append',
  ],
  [
    'append from Kafka does not record deletes',
    {
      source: 'source: {kind: kafka, uri: "h:9092", groupId: g}',
      tables: `tables:
  - {source: a, target: a, writeMode: append, onDelete: record}`,
    },
    'p.yaml:5:57: tables[0].onDelete: append from Kafka cannot record deletes; write onDelete: skip',
  ],
  [
    'append from Kafka says that it does not record deletes',
    {
      source: 'source: {kind: kafka, uri: "h:9092", groupId: g}',
      tables: `tables:
  - {source: a, target: a, writeMode: append}`,
    },
    'p.yaml:5:5: tables[0].onDelete: append from Kafka cannot record deletes; write onDelete: skip',
  ],
  // Rule 4: Postgres
  [
    'a Postgres source names its slot',
    { source: 'source: {kind: postgres, uri: "postgres://h/d"}' },
    'p.yaml:2:1: source.slotName: is missing, expected the name of the replication slot; add it, such as slotName: urutau',
  ],
  [
    'the name of a slot is an identifier',
    { source: 'source: {kind: postgres, uri: "postgres://h/d", slotName: my-slot}' },
    'p.yaml:2:59: source.slotName: expected a letter or "_", then letters, digits and "_", at most 63, came "my-slot"; rename the slot',
  ],
  [
    'an address and a connection in parts exclude each other',
    { source: 'source: {kind: postgres, uri: "postgres://h/d", slotName: s, postgres: {host: h, database: d}}' },
    'p.yaml:2:73: source.postgres.host: an uri and host, database exclude each other; keep the uri or the parts',
  ],
  [
    'a Postgres source has an address or a connection in parts',
    { source: 'source: {kind: postgres, slotName: s}' },
    'p.yaml:2:1: source.uri: is missing, expected an address or a postgres block with host and database; add one of the two, or set URUTAU_SOURCE_URI',
  ],
  [
    'a Postgres address has the scheme of Postgres',
    { source: 'source: {kind: postgres, slotName: s, uri: "mysql://u:hunter2@h/d"}' },
    'p.yaml:2:44: source.uri: expected an address that begins with postgres:// or postgresql://, came another scheme or none; correct the address',
  ],
  [
    'a connection in parts names its database',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h}`,
    },
    'p.yaml:5:3: source.postgres.database: is missing, a connection in parts needs it; add it',
  ],
  [
    'a host is bare',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: "h:5432", database: d}`,
    },
    'p.yaml:5:20: source.postgres.host: expected a bare host name or address, came "h:5432"; put port and database into their own fields',
  ],
  [
    'a verify mode needs the authority',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, ssl: {mode: verify-ca}}`,
    },
    'p.yaml:5:36: source.postgres.ssl.ca: is missing, verify-ca checks the server against it; add the authority’s certificate',
  ],
  [
    'a Postgres client certificate has its key',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, ssl: {key: k}}`,
    },
    'p.yaml:5:36: source.postgres.ssl.cert: is missing, expected beside key; add it, or remove key',
  ],
  [
    'an SSH connection names host, user and known hosts',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, ssh: {password: hunter2}}`,
    },
    'p.yaml:5:36: source.postgres.ssh.host: is missing, an SSH connection needs it; add it',
    'p.yaml:5:36: source.postgres.ssh.username: is missing, an SSH connection needs it; add it',
    'p.yaml:5:36: source.postgres.ssh.knownHosts: is missing, an SSH connection needs it; add it',
  ],
  [
    'an SSH connection has a password or a key',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, ssh: {host: b, username: u, knownHosts: k}}`,
    },
    'p.yaml:5:36: source.postgres.ssh.password: is missing, expected a password or a privateKey; add one of the two',
  ],
  [
    'an SSH password and key exclude each other',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, ssh: {host: b, username: u, knownHosts: k, password: p, privateKey: q}}`,
    },
    'p.yaml:5:92: source.postgres.ssh.privateKey: password and privateKey exclude each other; keep one of the two',
  ],
  [
    'a passphrase belongs to a key',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, ssh: {host: b, username: u, knownHosts: k, password: p, passphrase: q}}`,
    },
    'p.yaml:5:92: source.postgres.ssh.passphrase: belongs to a privateKey, and there is none; remove it',
  ],
  [
    'the first change is waited for at least 30 seconds',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, cdc: {initialWaitTime: 29}}`,
    },
    'p.yaml:5:59: source.postgres.cdc.initialWaitTime: expected a whole number of at least 30, came 29; correct the value',
  ],
  [
    'a publication is made or exists',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, publication: {create: false}}`,
    },
    'p.yaml:5:58: source.postgres.publication.create: expected true or existing, came false; correct the value',
  ],
  [
    'the postgres block belongs to Postgres',
    { source: 'source: {kind: mysql, uri: "mysql://h/d", postgres: {host: h}}' },
    'p.yaml:2:43: source.postgres: belongs to postgres, not to mysql; remove it',
  ],
  // Rule 5: sinks
  [
    'a sink that needs an address has one',
    { sink: 'sink: {type: clickhouse}' },
    'p.yaml:3:1: sink.uri: is missing, clickhouse needs an address; add it, or set URUTAU_SINK_URI',
  ],
  [
    'the default sink is Iceberg and needs an address',
    { sink: 'sink: {namespace: n}' },
    'p.yaml:3:1: sink.uri: is missing, iceberg+rest needs an address; add it, or set URUTAU_SINK_URI',
  ],
  [
    'a local Iceberg sink has a folder',
    { sink: 'sink: {type: iceberg+local, namespace: n}' },
    'p.yaml:3:1: sink.warehouse: is missing, expected the folder of the warehouse; add it',
  ],
  [
    'a Postgres sink has the scheme of Postgres',
    { sink: 'sink: {type: postgres, uri: "http://u:hunter2@h/d"}' },
    'p.yaml:3:29: sink.uri: expected an address that begins with postgres:// or postgresql://, came another scheme or none; correct the address',
  ],
  [
    'a namespace has no empty part',
    { sink: 'sink: {type: postgres, uri: "postgres://h/d", namespace: .a}' },
    'p.yaml:3:58: sink.namespace: expected parts that are not empty, came ".a"; remove the dot too many, or the field',
  ],
  [
    'an Iceberg table has a namespace',
    { sink: 'sink: {type: iceberg+rest, uri: "http://h"}' },
    'p.yaml:4:37: tables[0].target: an Iceberg table lies in a namespace, and none is named; write namespace.table, or set sink.namespace',
  ],
  [
    'commitMode belongs to Couchbase',
    { sink: 'sink: {type: iceberg+rest, uri: "http://h", namespace: n, commitMode: fast}' },
    'p.yaml:3:59: sink.commitMode: belongs to couchbase, not to iceberg+rest; remove it',
  ],
  [
    'maintenance belongs to Iceberg',
    { sink: 'sink: {type: stdout, maintenance: {enabled: true}}' },
    'p.yaml:3:22: sink.maintenance: belongs to iceberg+rest, iceberg+local, not to stdout; remove it',
  ],
  [
    'evolveSchema belongs to Iceberg',
    { sink: 'sink: {type: stdout, evolveSchema: true}' },
    'p.yaml:3:22: sink.evolveSchema: belongs to iceberg+rest, iceberg+local, not to stdout; remove it',
  ],
  [
    'deleteMode belongs to Iceberg',
    { sink: 'sink: {type: stdout, deleteMode: equality}' },
    'p.yaml:3:22: sink.deleteMode: belongs to iceberg+rest, iceberg+local, not to stdout; remove it',
  ],
  [
    'a size does not overflow',
    { more: 'window: 8192Ti' },
    'p.yaml:5:9: window: expected a size such as 1048576, 64Mi or 1Gi, more than zero and below 8192Ti, came "8192Ti"; correct the value',
  ],
  [
    'a size has a binary unit',
    { more: 'window: 64MB' },
    'p.yaml:5:9: window: expected a size such as 1048576, 64Mi or 1Gi, more than zero and below 8192Ti, came "64MB"; correct the value',
  ],
  [
    'a duration has a unit',
    { more: 'supervision: {stop: 15}' },
    'p.yaml:5:21: supervision.stop: expected a duration such as 250ms, 5s or 10m, more than zero and at most 596h, came 15; correct the value',
  ],
  [
    'a wait is not longer than a timer',
    { more: 'supervision: {stop: 597h}' },
    'p.yaml:5:21: supervision.stop: expected a duration such as 250ms, 5s or 10m, more than zero and at most 596h, came "597h"; correct the value',
  ],
  [
    'an orphan is at least an hour old',
    {
      sink: 'sink: {type: iceberg+rest, uri: "http://h", namespace: n, maintenance: {orphanCleanup: {olderThan: 59m}}}',
    },
    'p.yaml:3:100: sink.maintenance.orphanCleanup.olderThan: expected at least 1h, came "59m": a younger file may belong to a commit under way; write 1h or more',
  ],
  [
    'a client certificate of a sink has its key',
    { sink: 'sink: {type: clickhouse, uri: "http://h", tls: {cert: c}}' },
    'p.yaml:3:43: sink.tls.key: is missing, expected beside cert; add it, or remove cert',
  ],
  // Rule 6: tables
  [
    'there is a table',
    { tables: '' },
    'p.yaml:1:1: tables: expected at least one table, came none; add a table with source and target',
  ],
  [
    'discovery excludes a list',
    {
      source: `source:
  kind: postgres
  slotName: s
  postgres: {host: h, database: d, discover: true}`,
    },
    'p.yaml:7:1: tables: a list of tables and source.postgres.discover exclude each other; keep one of the two',
  ],
  [
    'a source is named once',
    {
      tables: `tables:
  - {source: public.a, target: a}
  - {source: public.a, target: b}`,
    },
    'p.yaml:6:14: tables[1].source: is the same as that of tables[0]; remove or rename one of the two',
  ],
  [
    'a target is named once, also by its full name',
    {
      sink: 'sink: {type: stdout, namespace: n}',
      tables: `tables:
  - {source: public.a, target: a}
  - {source: public.b, target: n.a}`,
    },
    'p.yaml:6:32: tables[1].target: is the same as that of tables[0]; remove or rename one of the two',
  ],
  [
    'a table has a target',
    {
      tables: `tables:
  - source: public.a`,
    },
    'p.yaml:5:5: tables[0].target: is missing, expected text of 1 to 256 bytes; add it',
  ],
  [
    'a table of a database has its schema in its name',
    {
      tables: `tables:
  - {source: a, target: a}`,
    },
    'p.yaml:5:14: tables[0].source: expected schema.table, came "a"; write the full name, such as public.orders',
  ],
  [
    'the most workers are not fewer than the workers',
    {
      tables: `tables:
  - {source: public.a, target: a, workers: {number: 4, max: 2}}`,
    },
    'p.yaml:5:61: tables[0].workers.max: expected at least number (4), came 2; raise max or lower number',
  ],
  [
    'workers are not negative',
    {
      tables: `tables:
  - {source: public.a, target: a, workers: {number: -1}}`,
    },
    'p.yaml:5:53: tables[0].workers.number: expected a whole number of at least 0, came -1; correct the value',
  ],
  // Rule 7: cursor
  [
    'the incremental mode has a cursor',
    {
      tables: `tables:
  - {source: public.a, target: a, mode: incremental}`,
    },
    'p.yaml:5:5: tables[0].cursor: is missing, the incremental mode asks by it; name a column that only grows',
  ],
  [
    'a cursor belongs to the incremental mode',
    {
      tables: `tables:
  - {source: public.a, target: a, cursor: c}`,
    },
    'p.yaml:5:35: tables[0].cursor: belongs to mode: incremental; remove it, or set the mode',
  ],
  // Rule 8: keys
  [
    'upsert has a key',
    {
      tables: `tables:
  - {source: public.a, target: a, primaryKey: []}`,
    },
    'p.yaml:5:35: tables[0].primaryKey: is missing, upsert needs a key; name the key columns, or write writeMode: append',
  ],
  [
    'upsert from a topic names its key',
    {
      source: 'source: {kind: kafka, uri: "h:9092", partitionedByPrimaryKey: true}',
      tables: 'tables: [{source: a, target: a}]',
    },
    'p.yaml:4:10: tables[0].primaryKey: is missing, upsert needs a key; name the key columns, or write writeMode: append',
  ],
  [
    'a key column has no dot',
    {
      tables: `tables:
  - {source: public.a, target: a, primaryKey: [a.b]}`,
    },
    'p.yaml:5:48: tables[0].primaryKey[0]: expected a column without a dot, came "a.b"; name a top-level column',
  ],
  [
    'a key column is named once',
    {
      tables: `tables:
  - {source: public.a, target: a, primaryKey: [a, a]}`,
    },
    'p.yaml:5:51: tables[0].primaryKey[1]: this column is named twice; remove one',
  ],
  // Rule 9: append with a filter
  [
    'append with a filter says that the filter is immutable',
    {
      tables: `tables:
  - {source: public.a, target: a, writeMode: append, filter: {where: {col: a, op: is_null}}}`,
    },
    'p.yaml:5:5: tables[0].filterImmutable: is missing, in append a row that leaves or enters the filter cannot be told; set it to true where the filter’s columns never change, or remove the filter',
  ],
  // Rule 10: append-idempotent
  [
    'append-idempotent has an identity',
    {
      tables: `tables:
  - {source: public.a, target: a, writeMode: append-idempotent}`,
    },
    'p.yaml:5:5: tables[0].identity: is missing, append-idempotent needs it; name metadata columns made from stream, shard or sequence',
  ],
  [
    'an identity is made of metadata',
    {
      tables: `tables:
  - {source: public.a, target: a, writeMode: append-idempotent, metadata: [{from: sequence, as: s}, {from: op, as: o}], identity: [s, o]}`,
    },
    'p.yaml:5:135: tables[0].identity[1]: expected a metadata column made from stream, shard or sequence, came "o"; add it to metadata, or name another',
  ],
  [
    'an identity has a shard or a sequence',
    {
      tables: `tables:
  - {source: public.a, target: a, writeMode: append-idempotent, metadata: [{from: stream, as: s}], identity: [s]}`,
    },
    'p.yaml:5:100: tables[0].identity: expected shard or sequence in it, came neither: changes of one stream would be one; add the column made from sequence',
  ],
  [
    'an identity belongs to append-idempotent',
    {
      tables: `tables:
  - {source: public.a, target: a, identity: [s]}`,
    },
    'p.yaml:5:35: tables[0].identity: belongs to writeMode: append-idempotent; remove it, or set the write mode',
  ],
  // Rule 11: filters
  [
    'a filter node is one thing',
    {
      tables: `tables:
  - {source: public.a, target: a, filter: {all: [{where: {col: a, op: is_null}}], not: {where: {col: a, op: is_null}}}}`,
    },
    'p.yaml:5:35: tables[0].filter: expected exactly one of all, any, not, where, came all and not; join conditions with all or any',
  ],
  [
    'a filter node is something',
    {
      tables: `tables:
  - {source: public.a, target: a, filter: {any: [{}]}}`,
    },
    'p.yaml:5:50: tables[0].filter.any[0]: expected exactly one of all, any, not, where, came none; join conditions with all or any',
  ],
  [
    'a comparison has a value',
    {
      tables: `tables:
  - {source: public.a, target: a, filter: {where: {col: a, op: eq}}}`,
    },
    'p.yaml:5:44: tables[0].filter.where.value: expected one value for eq; add it, or use is_null',
  ],
  [
    'in has a list that is not empty',
    {
      tables: `tables:
  - {source: public.a, target: a, filter: {not: {where: {col: a, op: in, value: []}}}}`,
    },
    'p.yaml:5:74: tables[0].filter.not.where.value: expected a list that is not empty for in; write value: [a, b]',
  ],
  [
    'is_null takes no value',
    {
      tables: `tables:
  - {source: public.a, target: a, filter: {where: {col: a, op: is_null, value: 1}}}`,
    },
    'p.yaml:5:73: tables[0].filter.where.value: is_null takes no value; remove it',
  ],
  [
    'an operation is known',
    {
      tables: `tables:
  - {source: public.a, target: a, filter: {where: {col: a, op: equal, value: 1}}}`,
    },
    'p.yaml:5:64: tables[0].filter.where.op: expected one of eq, neq, lt, lte, gt, gte, in, not_in, is_null, is_not_null, came "equal"; correct the value',
  ],
  // Rule 12: columns
  [
    'a column filter names a column once',
    {
      tables: `tables:
  - {source: public.a, target: a, columnFilter: [a, a]}`,
    },
    'p.yaml:5:53: tables[0].columnFilter[1]: this column is named twice; remove one',
  ],
  [
    'a column filter holds the key',
    {
      tables: `tables:
  - {source: public.a, target: a, primaryKey: [id], columnFilter: [a]}`,
    },
    'p.yaml:5:53: tables[0].columnFilter: the key column id is not in it; add it',
  ],
  [
    'a column filter is not empty',
    {
      tables: `tables:
  - {source: public.a, target: a, columnFilter: []}`,
    },
    'p.yaml:5:35: tables[0].columnFilter: expected at least one column, came none; name columns, or remove the field',
  ],
  [
    'a chunk column is in the key',
    {
      tables: `tables:
  - {source: public.a, target: a, primaryKey: [id], chunkColumn: a}`,
    },
    'p.yaml:5:66: tables[0].chunkColumn: expected a column of the key (id); name one, or remove the field',
  ],
  // Rule 13: metadata
  [
    'a metadata name is known',
    {
      tables: `tables:
  - {source: public.a, target: a, metadata: [{from: commit_time, as: a}]}`,
    },
    'p.yaml:5:53: tables[0].metadata[0].from: expected one of op, commit_ts, ingest_ts, position, source_table, phase, stream, shard, sequence, msg_ts, msg_key, headers, enrich_miss, came "commit_time"; did you mean "commit_ts"?',
  ],
  [
    'a metadata column is an identifier',
    {
      tables: `tables:
  - {source: public.a, target: a, metadata: [{from: op, as: "my op"}], writeMode: append}`,
    },
    'p.yaml:5:61: tables[0].metadata[0].as: expected a letter or "_", then letters, digits and "_", came "my op"; rename the column',
  ],
  [
    'a metadata column is named once',
    {
      tables: `tables:
  - {source: public.a, target: a, metadata: [{from: phase, as: a}, {from: stream, as: a}]}`,
    },
    'p.yaml:5:87: tables[0].metadata[1].as: this name is used twice; rename one of the two',
  ],
  [
    'a metadata column does not hide a column',
    {
      tables: `tables:
  - {source: public.a, target: a, primaryKey: [id], metadata: [{from: phase, as: id}]}`,
    },
    'p.yaml:5:82: tables[0].metadata[0].as: the table has a column of this name; rename the metadata column',
  ],
  // Rule 14: casts and partitions
  [
    'a cast target is a type',
    {
      tables: `tables:
  - {source: public.a, target: a, cast: {a: varchar}}`,
    },
    'p.yaml:5:45: tables[0].cast.a: expected a type, came "varchar"; write a type such as int64, string, timestamptz, decimal(12,2) or string(hex)',
  ],
  [
    'a scale is not greater than the precision',
    {
      tables: `tables:
  - {source: public.a, target: a, cast: {a: "decimal(4,5)"}}`,
    },
    'p.yaml:5:45: tables[0].cast.a: expected a type, came "decimal(4,5)"; write a type such as int64, string, timestamptz, decimal(12,2) or string(hex)',
  ],
  [
    'a cast column exists',
    {
      tables: `tables:
  - {source: public.a, target: a, columnFilter: [a], cast: {b: string}}`,
    },
    'p.yaml:5:61: tables[0].cast.b: the table has no such column; name one of its columns',
  ],
  [
    'columns are declared for topics only',
    {
      tables: `tables:
  - {source: public.a, target: a, columns: [{name: a, type: string}]}`,
    },
    'p.yaml:5:35: tables[0].columns: belongs to kafka, not to postgres; remove it',
  ],
  [
    'a partition is a column or a known function of one',
    {
      tables: `tables:
  - {source: public.a, target: a, partitionBy: [day(created_at), "bucket(0,id)"]}`,
    },
    'p.yaml:5:66: tables[0].partitionBy[1]: expected column, year, month, day, hour(column), bucket(N,column) or truncate(N,column), came "bucket(0,id)"; write it as day(created_at) or bucket(16,id)',
  ],
  // Rule 15: bootstrap
  [
    'a snapshot takes no start',
    {
      tables: `tables:
  - {source: public.a, target: a, bootstrap: {startAt: current}}`,
    },
    'p.yaml:5:47: tables[0].bootstrap.startAt: belongs to adopt and adopt-verify; a snapshot finds its own start; remove it, or set the mode',
  ],
  [
    'an explicit start has a position',
    {
      tables: `tables:
  - {source: public.a, target: a, bootstrap: {mode: adopt, startAt: explicit}}`,
    },
    'p.yaml:5:35: tables[0].bootstrap.position: is missing, an explicit start needs it; add it, or write startAt: current',
  ],
  [
    'a position belongs to an explicit start',
    {
      tables: `tables:
  - {source: public.a, target: a, bootstrap: {mode: adopt, position: 0/1}}`,
    },
    'p.yaml:5:60: tables[0].bootstrap.position: belongs to startAt: explicit; remove it, or write startAt: explicit',
  ],
  [
    'a snapshot is not asked for where none is taken',
    {
      source: 'source: {kind: postgres, uri: "postgres://h/d", slotName: s, snapshotMode: none}',
      tables: `tables:
  - {source: public.a, target: a, bootstrap: {mode: snapshot}}`,
    },
    'p.yaml:5:53: tables[0].bootstrap.mode: source.snapshotMode: none takes no snapshot; remove one of the two',
  ],
  // Rule 16: enrichment
  [
    'a reference is joined once',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a], select: [b]}, {table: r, source: {uri: u, query: q}, on: [a], select: [c]}]}`,
    },
    'p.yaml:5:114: tables[0].enrich[1].table: this reference is joined twice; rename one of the two',
  ],
  [
    'a reference has an address, a query and join columns',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, select: [b]}]}`,
    },
    'p.yaml:5:44: tables[0].enrich[0].source.uri: is missing, the reference is read with it; add it',
    'p.yaml:5:44: tables[0].enrich[0].source.query: is missing, the reference is read with it; add it',
    'p.yaml:5:44: tables[0].enrich[0].on: is missing, expected the columns to join on; write on: [column], or on: {own: reference}',
  ],
  [
    'a join type is known',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a], select: [b], joinType: right}]}`,
    },
    'p.yaml:5:115: tables[0].enrich[0].joinType: expected one of left, left outer, inner, left semi, left anti, came "right"; correct the value',
  ],
  [
    'a join takes columns',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a]}]}`,
    },
    'p.yaml:5:44: tables[0].enrich[0].select: is missing, expected the columns to take; name them, or write select: ["*"]',
  ],
  [
    'a star stands alone',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a], select: ["*", b]}]}`,
    },
    'p.yaml:5:92: tables[0].enrich[0].select: "*" stands alone; remove the other columns, or the "*"',
  ],
  [
    'a semi join takes no columns',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a], joinType: left semi, select: [b]}]}`,
    },
    'p.yaml:5:113: tables[0].enrich[0].select: left semi only filters and takes no columns; remove it',
  ],
  [
    'a new name is for a selected column',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a], select: [b], as: {r.c: d}}]}`,
    },
    'p.yaml:5:110: tables[0].enrich[0].as["r.c"]: expected a selected column as r.column; add it to select, or remove it',
  ],
  [
    'names of results are unique',
    {
      tables: `tables:
  - {source: public.a, target: a, enrich: [{table: r, source: {uri: u, query: q}, on: [a], select: [b, c], as: {r.b: x, r.c: x}}]}`,
    },
    'p.yaml:5:126: tables[0].enrich[0].as["r.c"]: another column has the name "x"; rename one of the two',
  ],
  // beside the numbered rules
  [
    'the first pause is not longer than the longest',
    { more: 'supervision: {backoff: {first: 2m}}' },
    'p.yaml:5:15: supervision.backoff.max: expected at least first (2m), came 60s; raise max or lower first',
  ],
  [
    'a variable is set',
    { source: 'source: {kind: postgres, uri: "${env:NOWHERE}", slotName: s}' },
    'p.yaml:2:31: source.uri: the environment variable NOWHERE is not set; set it, or give a default: ${env:NOWHERE:-default}',
  ],
  [
    'a file is readable',
    { source: 'source: {kind: postgres, uri: "${file:/nowhere}", slotName: s}' },
    'p.yaml:2:31: source.uri: the file /nowhere cannot be read (ENOENT); check that it exists and that this user may read it',
  ],
  [
    'a reference is of a known kind',
    { source: 'source: {kind: postgres, uri: "${evn:X}", slotName: s}' },
    'p.yaml:2:31: source.uri: after "${" expected env:NAME, env:NAME:-default or file:/path, came something else; did you mean "env"?',
  ],
  [
    'a reference is closed',
    { source: 'source: {kind: postgres, uri: "a${env:X", slotName: s}' },
    'p.yaml:2:31: source.uri: "${" has no closing "}"; close it, or write $${ for the characters themselves',
  ],
  [
    'a field is written once',
    { more: 'pipeline: q' },
    'p.yaml:5:1: pipeline: this field is written twice; keep one of the two',
  ],
  [
    'a text is YAML',
    { text: 'pipeline: "p' },
    'p.yaml:1:13: not valid YAML: a closing quote, bracket, colon or comma is missing; indent with spaces and put text with special characters in quotes',
  ],
  [
    'a file is not empty',
    {
      text: `# nothing
`,
    },
    'p.yaml:1:1: expected a map with pipeline, source, sink and tables, came nothing; write them, or let `urutau-host init` write a first file',
  ],
];

test('the file that every breach starts from is valid', () => {
  expect(problemsOf({})).toEqual([]);
});

for (const [sentence, given, ...lines] of BREACHES) {
  test(`${sentence}, and a breach is told in one line`, () => {
    expect(problemsOf(given)).toEqual(lines);
  });
}

function problemsOf({ text, ...blocks }: Given): string[] {
  const file =
    text ??
    Object.values({ ...VALID, ...blocks })
      .filter((block) => block !== '')
      .join('\n');
  const readFile = (path: string) => {
    if (path.endsWith('p.yaml')) return file;
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  try {
    loadPipeline('p.yaml', { env: {}, readFile });
    return [];
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    return error.message.split('\n');
  }
}

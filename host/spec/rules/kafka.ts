import type { Finding } from '../problem.ts';
import { clientCertificate } from './client-certificate.ts';
import { empty, type Rule, type Subject, tablesOf, writeModeOf } from './rule.ts';

/** Rule 3. */
export const kafka: Rule = function* (subject) {
  if (subject.source !== 'kafka') return;
  yield* connection(subject);
  yield* tables(subject);
};

function* connection({ file }: Subject): Iterable<Finding> {
  const source = file.source ?? {};
  if (empty(source.uri)) {
    yield {
      path: ['source', 'uri'],
      what: 'is missing, expected the addresses of the brokers',
      remedy: 'add it, or set URUTAU_SOURCE_URI',
    };
  }
  if (source.snapshotMode === 'initial') {
    yield {
      path: ['source', 'snapshotMode'],
      what: 'expected none, came "initial": a topic has no snapshot',
      remedy: 'write none',
    };
  }
  if (source.format === 'avro' && empty(source.schemaRegistry)) {
    yield {
      path: ['source', 'schemaRegistry'],
      what: 'is missing, avro cannot be read without it',
      remedy: 'add its address',
    };
  }
  yield* clientCertificate(source.kafka?.tls, ['source', 'kafka', 'tls']);
  const sasl = source.kafka?.sasl;
  for (const field of sasl === undefined ? [] : (['mechanism', 'username', 'password'] as const)) {
    if (empty(sasl![field])) {
      yield {
        path: ['source', 'kafka', 'sasl', field],
        what: 'is missing, SASL needs mechanism, username and password',
        remedy: 'add it',
      };
    }
  }
}

function* tables({ file }: Subject): Iterable<Finding> {
  for (const { table, at } of tablesOf(file)) {
    const mode = writeModeOf(table, file);
    const path = [...at, 'writeMode'];
    if (mode === 'upsert' && file.source?.format === 'raw') {
      yield {
        path,
        what: 'raw messages have no operation, so upsert is not possible',
        remedy: 'write writeMode: append',
      };
    } else if (mode === 'upsert' && file.source?.partitionedByPrimaryKey !== true) {
      const what = 'upsert needs all messages of one key in one partition';
      yield {
        path,
        what,
        remedy: 'set source.partitionedByPrimaryKey: true where that is so, or write writeMode: append',
      };
    }
    if (mode === 'append' && table.onDelete !== 'skip') {
      const what = 'append from Kafka cannot record deletes';
      yield { path: [...at, 'onDelete'], what, remedy: 'write onDelete: skip' };
    }
  }
}

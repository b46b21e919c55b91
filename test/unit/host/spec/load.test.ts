// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { type LoadOptions, loadPipeline } from '../../../../host/spec/load.ts';
import { notCarriedOut } from '../../../../host/spec/not-carried-out.ts';
import { renderProblem, SpecError } from '../../../../host/spec/problem.ts';
import { SINK_TYPES } from '../../../../host/spec/schema/sink.ts';
import { SOURCE_KINDS } from '../../../../host/spec/schema/source.ts';
import { revealed, Secret } from '../../../../host/spec/secrets.ts';

const FIXTURES = fileURLToPath(new URL('../../../fixtures/pipelines/', import.meta.url));
const SCHEMA = fileURLToPath(new URL('../../../../contract/schemas/pipeline.schema.json', import.meta.url));
const VALID = readdirSync(FIXTURES).filter((name) => name !== 'twenty-mistakes.yaml');

const ENV = {
  SOURCE_URI: 'postgres://source.example/shop',
  SHOP_PASSWORD: 'a password',
  CATALOG_SECRET: 'a secret',
  REFERENCE_URI: 'postgres://reference.example/shop',
  KAFKA_PASSWORD: 'a password',
  API_TOKEN: 'a token',
  BUCKET: 'a bucket',
};

const MINIMAL = `
pipeline: p
source: {kind: postgres, uri: "postgres://h/d", slotName: s}
sink: {type: postgres, uri: "postgres://h/e"}
tables: [{source: public.a, target: a}]
`;

for (const name of VALID) {
  test(`the example ${name} is valid for the host and for an editor`, () => {
    const { warnings } = loadFixture(name);
    const validate = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(SCHEMA, 'utf8')));

    validate(parse(readFileSync(FIXTURES + name, 'utf8')));

    expect(warnings).toEqual([]);
    expect(validate.errors).toBeNull();
  });
}

test('there is a valid example of every source kind and every sink type, and of an external driver for both', () => {
  const pipelines = VALID.map((name) => loadFixture(name).pipeline);

  expect(new Set(pipelines.map(({ source }) => source.kind))).toEqual(new Set([...SOURCE_KINDS, undefined]));
  expect(new Set(pipelines.map(({ sink }) => sink.type))).toEqual(new Set([...SINK_TYPES, undefined]));
});

test('a file with twenty mistakes names all of them at once, each with its place, field and remedy', () => {
  const lines = problemsOf(readFileSync(`${FIXTURES}twenty-mistakes.yaml`, 'utf8'));

  expect(lines).toEqual([
    'p.yaml:2:11: pipeline: expected a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter or digit, came "../orders"; correct the value',
    'p.yaml:5:3: source.slotNam: unknown field; did you mean "slotName"?',
    'p.yaml:6:17: source.snapshotMode: expected one of initial, none, came "inital"; did you mean "initial"?',
    'p.yaml:7:3: source.serverId: belongs to mysql, mariadb, not to postgres; remove it',
    'p.yaml:8:3: source.postgres.database: is missing, a connection in parts needs it; add it',
    'p.yaml:9:11: source.postgres.host: expected a bare host name or address, came "db.example:5432"; put port and database into their own fields',
    'p.yaml:10:11: source.postgres.port: expected a whole number from 1 to 65535, came 70000; correct the value',
    'p.yaml:11:17: source.postgres.maxThreads: expected a whole number from 1 to 32, came 64; correct the value',
    'p.yaml:12:15: source.postgres.password: the environment variable TWENTY_MISTAKES_PASSWORD is not set; set it, or give a default: ${env:TWENTY_MISTAKES_PASSWORD:-default}',
    'p.yaml:13:5: source.postgres.ssl.ca: is missing, verify-full checks the server against it; add the authority’s certificate',
    'p.yaml:14:1: sink.uri: is missing, postgres needs an address; add it, or set URUTAU_SINK_URI',
    'p.yaml:16:3: sink.commitMode: belongs to couchbase, not to postgres; remove it',
    'p.yaml:17:14: sink.namespace: expected parts that are not empty, came "mirror..shop"; remove the dot too many, or the field',
    'p.yaml:18:18: sink.flush.rows: expected a whole number of at least 1, came 0; correct the value',
    'p.yaml:18:28: sink.flush.bytes: expected a size such as 1048576, 64Mi or 1Gi, more than zero and below 8192Ti, came "32MB"; correct the value',
    'p.yaml:18:44: sink.flush.interval: expected a duration such as 250ms, 5s or 10m, more than zero and at most 596h, came "5 seconds"; correct the value',
    'p.yaml:22:16: tables[0].writeMode: expected one of upsert, append, append-idempotent, came "upsrt"; did you mean "upsert"?',
    'p.yaml:23:52: tables[0].filter.where.value: expected a list that is not empty for in; write value: [a, b]',
    'p.yaml:26:5: tables[1].cursor: belongs to mode: incremental; remove it, or set the mode',
    'p.yaml:27:19: tables[1].partitionBy[0]: expected column, year, month, day, hour(column), bucket(N,column) or truncate(N,column), came "week(created_at)"; write it as day(created_at) or bucket(16,id)',
  ]);
});

test('what a file does not say is filled in', () => {
  const { pipeline } = load(MINIMAL);

  const { written: _, source, sink, directory: __, ...rest } = pipeline;
  expect({
    source: { ...source, config: revealed(source.config) },
    sink: { ...sink, config: revealed(sink.config) },
    ...rest,
  }).toEqual({
    name: 'p',
    file: 'p.yaml',
    source: {
      kind: 'postgres',
      driver: { kind: 'builtin', name: 'postgres' },
      config: { uri: 'postgres://h/d', slotName: 's' },
      snapshotMode: 'initial',
    },
    sink: {
      type: 'postgres',
      driver: { kind: 'builtin', name: 'postgres' },
      config: { uri: 'postgres://h/e' },
      namespace: 'public',
      deadLetters: 'public.urutau_dead_letters',
      flush: { rows: 100_000, bytes: 32 * 2 ** 20, intervalMs: 5_000 },
    },
    tables: [
      {
        source: 'public.a',
        target: 'public.a',
        writeMode: 'upsert',
        onDelete: 'record',
        onPoison: 'pause',
        onInvalid: 'error',
        onTruncate: 'fail',
        schemaChange: 'pause',
        createIfNotExists: true,
      },
    ],
    store: { kind: 'sqlite' },
    windowBytes: 64 * 2 ** 20,
    supervision: {
      heartbeatMs: 2_000,
      misses: 7,
      readyMs: 30_000,
      stopMs: 15_000,
      backoff: { firstMs: 1_000, maxMs: 60_000 },
      // biome-ignore lint/suspicious/noThenProperty: the field of the pipeline file has this name.
      breaker: { failures: 3, windowMs: 300_000, holdMs: 60_000, then: 'hold' },
    },
  });
});

test('a pipeline is frozen to its last field', () => {
  const { pipeline } = loadFixture('external-to-external.yaml');

  expect(Object.isFrozen(pipeline.source.config['pages'])).toBe(true);
  expect(Object.isFrozen(pipeline.tables[0])).toBe(true);
  expect(Object.isFrozen(pipeline.supervision.breaker)).toBe(true);
});

test('a table’s own onTruncate goes before that of the source', () => {
  const { pipeline } = loadFixture('postgres-to-postgres.yaml');

  expect(pipeline.tables.map(({ onTruncate }) => onTruncate)).toEqual(['apply', 'fail']);
});

test('a built-in driver gets its block without what is the host’s own', () => {
  const { pipeline } = loadFixture('postgres-to-postgres.yaml');

  expect(revealed(pipeline.sink.config)).toEqual({
    uri: 'postgres://localhost/mirror',
    namespace: 'mirror',
    tablePrefix: 'shop_',
  });
  expect(Object.keys(pipeline.source.config)).toEqual(['uri', 'slotName', 'postgres']);
});

test('an external driver gets its config as it was written', () => {
  const { pipeline } = loadFixture('external-to-external.yaml');

  expect(pipeline.source.driver).toEqual({ kind: 'folder', directory: `${FIXTURES}my-driver` });
  expect(pipeline.sink.driver).toEqual({ kind: 'installed', name: '@example/warehouse-sink', version: '1.2.0' });
  expect(revealed(pipeline.source.config)).toEqual({
    endpoint: 'https://api.example',
    apiToken: 'a token',
    pages: [1, 2, 3],
    nothing: '',
  });
});

test('what an external driver gets from the environment is a secret, whatever its name', () => {
  const { pipeline } = loadFixture('external-to-external.yaml');

  expect(pipeline.sink.config['bucket']).toBeInstanceOf(Secret);
});

test('a driver folder of the command line takes the place of a built-in driver and gets the same config', () => {
  const { pipeline } = load(MINIMAL, { sourcePlugin: '/drivers/mine' });

  expect(pipeline.source.driver).toEqual({ kind: 'folder', directory: '/drivers/mine' });
  expect(revealed(pipeline.source.config)).toEqual({ uri: 'postgres://h/d', slotName: 's' });
  expect(notCarriedOut(pipeline)).toEqual([]);
});

test('with driver folders of the command line a file needs no kind and no type', () => {
  const text = 'pipeline: p\nsource: {config: {a: 1}}\nsink: {config: {b: 2}}\ntables: [{source: a, target: a}]';

  const { pipeline } = load(text, { sourcePlugin: '/drivers/in', sinkPlugin: '/drivers/out' });

  expect([pipeline.source.config, pipeline.sink.config]).toEqual([{ a: 1 }, { b: 2 }]);
});

test('the environment fills what is empty and nothing else', () => {
  const env = { URUTAU_SOURCE_URI: 'postgres://from-env/d', URUTAU_SINK_URI: 'postgres://from-env/e' };
  const text = MINIMAL.replace('"postgres://h/d"', '""');

  const { pipeline } = load(text, { env });

  expect(revealed(pipeline.source.config)).toEqual({ uri: 'postgres://from-env/d', slotName: 's' });
  expect(revealed(pipeline.sink.config)).toEqual({ uri: 'postgres://h/e' });
});

test('the environment adds no address to a connection in parts', () => {
  const { pipeline } = load(readFileSync(`${FIXTURES}postgres-block-to-stdout.yaml`, 'utf8'), {
    env: { ...ENV, URUTAU_SOURCE_URI: 'postgres://from-env/d', URUTAU_SINK_URI: 'postgres://from-env/e' },
  });

  expect(Object.keys(pipeline.source.config)).toEqual(['slotName', 'postgres']);
  expect(pipeline.sink.config).toEqual({ discard: true });
});

test('a number and a truth value may come from the environment', () => {
  const text = MINIMAL.replace('target: a', 'target: a, chunkRows: "${env:ROWS}", createIfNotExists: "${env:CREATE}"');

  const { pipeline } = load(text, { env: { ROWS: '500', CREATE: 'false' } });

  expect(pipeline.tables[0]).toMatchObject({ chunkRows: 500, createIfNotExists: false });
});

test('a text stays a text when it comes from the environment and looks like a number', () => {
  const text = MINIMAL.replace('slotName: s', 'slotName: "s_${env:N}"').replace('target: a', 'target: "${env:N}"');

  const { pipeline } = load(text, { env: { N: '12' } });

  expect(pipeline.source.config['slotName']).toBe('s_12');
  expect(pipeline.tables[0]?.target).toBe('public.12');
});

test('what works and is rarely meant is a warning', () => {
  const text = `
pipeline: p
source: {kind: postgres, slotName: s, postgres: {host: h, database: d, schemas: [public]}}
sink: {type: stdout}
tables:
  - {source: public.a, target: a, primaryKey: [id], cast: {id: string}, metadata: [{from: op, as: op}]}
`;

  expect(load(text).warnings.map(renderProblem)).toEqual([
    'p.yaml:3:72: source.postgres.schemas: has no effect without discover; set discover: true, or remove it',
    'p.yaml:6:64: tables[0].cast.id: changes a key column: two keys may become one; make sure that they stay distinct',
    'p.yaml:6:91: tables[0].metadata[0].from: in upsert a row shows only its last operation, and deletes are gone; use append, or remove the column',
  ]);
});

test('a missing pipeline file is a problem with a remedy', () => {
  expect(() => loadPipeline('no-such-file.yaml', { env: {} })).toThrow(
    'no-such-file.yaml:1:1: the pipeline file cannot be read (ENOENT); check the path and that this user may read it',
  );
});

test('what this version does not carry out is named with its place and its reason', () => {
  const { pipeline } = loadFixture('mariadb-to-iceberg-local.yaml');

  expect(notCarriedOut(pipeline).map(({ line, path, what }) => `${line} ${path}: ${what}`)).toEqual([
    '4 source.kind: this version does not carry it out: this source driver is not built in yet',
    '7 sink.type: this version does not carry it out: this sink driver is not built in yet',
    '10 sink.deleteMode: this version does not carry it out: there is no Iceberg sink',
    '11 sink.formatVersion: this version does not carry it out: there is no Iceberg sink',
    '17 tables[1].mode: this version does not carry it out: tables follow the log',
    '18 tables[1].cursor: this version does not carry it out: tables follow the log',
    '20 tables[1].filter: this version does not carry it out: rows are not filtered',
    '21 tables[1].filterImmutable: this version does not carry it out: rows are not filtered',
    '22 pausedLogLimit: this version does not carry it out: a paused table holds the log back without a limit',
  ]);
});

test('the default sink type is named when it is not carried out', () => {
  const { pipeline } = load(
    MINIMAL.replace('{type: postgres, uri: "postgres://h/e"}', '{uri: "http://h", namespace: n}'),
  );

  expect(notCarriedOut(pipeline).map(renderProblem)).toEqual([
    'p.yaml:4:1: sink.type: this version does not carry it out: this sink driver is not built in yet; remove it or use postgres, stdout',
  ]);
});

for (const name of [
  'postgres-to-postgres.yaml',
  'postgres-block-to-stdout.yaml',
  'external-to-external.yaml',
  'json-file.json',
]) {
  test(`everything in ${name} is carried out`, () => {
    expect(notCarriedOut(loadFixture(name).pipeline)).toEqual([]);
  });
}

function loadFixture(name: string) {
  const readFile = (path: string) =>
    path.endsWith('/secrets/passphrase') ? 'a passphrase\n' : readFileSync(path, 'utf8');
  return loadPipeline(FIXTURES + name, { env: ENV, readFile });
}

function load(text: string, options: Partial<LoadOptions> = {}) {
  return loadPipeline('p.yaml', { env: {}, readFile: () => text, ...options });
}

function problemsOf(text: string): string[] {
  try {
    load(text);
    return [];
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    return error.message.split('\n');
  }
}

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import { format, inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadPipeline } from '../../../../host/spec/load.ts';
import { notCarriedOut } from '../../../../host/spec/not-carried-out.ts';
import { renderProblem, SpecError } from '../../../../host/spec/problem.ts';
import { revealed, Secret } from '../../../../host/spec/secrets.ts';

/** Texts that are found again wherever they are printed: no message of ours holds them by chance. */
const secretText = fc.string({ minLength: 1, maxLength: 20 }).map((text) => `Zq7${text.replace(/\$/g, '')}9xW`);

test('a secret prints as *** in every way of printing', () => {
  fc.assert(
    fc.property(secretText, (text) => {
      const secret = new Secret(text);
      const printed = [
        String(secret),
        `${secret}`,
        JSON.stringify({ secret }),
        inspect(secret),
        inspect({ deep: [{ secret }] }, { depth: null, showHidden: true }),
        inspect(secret, { customInspect: false, showHidden: true }),
        format('%s %o %O %j', secret, secret, secret, secret),
        JSON.stringify(Object.entries(secret)),
      ].join('\n');

      expect(printed).not.toContain('Zq7');
      expect(printed).toContain('***');
      expect(secret.reveal()).toBe(text);
    }),
  );
});

test('no secret of a valid file shows in the pipeline, and the driver’s config holds each', () => {
  fc.assert(
    fc.property(secretText, secretText, secretText, (password, key, token) => {
      const { pipeline } = load({
        pipeline: 'p',
        source: {
          kind: 'postgres',
          slotName: 's',
          postgres: {
            host: 'h',
            database: 'd',
            password,
            params: { sslpassword: token },
            ssl: { mode: 'require', cert: 'c', key },
          },
        },
        sink: { driver: './d', config: { apiToken: token, nested: { credentials: { user: key } } } },
        tables: [{ source: 'public.a', target: 'a' }],
      });

      const printed = [inspect(pipeline, { depth: null, showHidden: true }), JSON.stringify(pipeline)].join('\n');
      const given = JSON.stringify([revealed(pipeline.source.config), revealed(pipeline.sink.config)]);

      expect(printed).not.toContain('Zq7');
      for (const text of [password, key, token]) expect(given).toContain(JSON.stringify(text));
    }),
  );
});

test('a secret planted in each field that may hold one shows nowhere, also in what is not carried out', () => {
  const files = [
    {
      source: {
        kind: 'kafka',
        uri: 'kafka://u:Zq7a9xW@h:9092',
        partitionedByPrimaryKey: true,
        kafka: { sasl: { mechanism: 'plain', username: 'u', password: 'Zq7b9xW' }, tls: { key: 'Zq7c9xW', cert: 'c' } },
      },
      sink: { type: 'iceberg+rest', uri: 'https://u:Zq7d9xW@h', clientId: 'i', clientSecret: 'Zq7e9xW' },
    },
    {
      source: {
        kind: 'postgres',
        slotName: 's',
        snapshotUri: 'postgres://u:Zq7f9xW@h/d',
        postgres: {
          host: 'h',
          database: 'd',
          password: 'Zq7g9xW',
          ssh: { host: 'h', username: 'u', knownHosts: 'k', privateKey: 'Zq7h9xW', passphrase: 'Zq7i9xW' },
        },
      },
      sink: { type: 'postgres', uri: 'postgres://u:Zq7j9xW@h/d' },
    },
  ];
  for (const file of files) {
    const told: unknown[] = [];
    try {
      const { pipeline, warnings } = load({
        pipeline: 'p',
        ...file,
        tables: [{ source: 'a.a', target: 'n.a', primaryKey: ['id'] }],
      });
      told.push(inspect(pipeline, { depth: null, showHidden: true }), warnings, notCarriedOut(pipeline));
    } catch (error) {
      told.push(String(error));
    }

    expect(JSON.stringify(told)).not.toContain('Zq7');
    expect(JSON.stringify(told)).toContain('does not carry it out');
  }
});

test('no secret shows in the problems of a file, wherever in the file it stands', () => {
  fc.assert(
    fc.property(secretText, fc.constantFrom(...BROKEN), (text, broken) => {
      const problems = problemsOf(broken(text));

      expect(problems.length).toBeGreaterThan(0);
      expect(problems.map(renderProblem).join('\n')).not.toContain('Zq7');
    }),
  );
});

const TABLES = [{ source: 'public.a', target: 'a' }];
const STDOUT = { type: 'stdout' };

/** Files that are wrong at or beside a secret. */
const BROKEN: ((secret: string) => object)[] = [
  (s) => ({
    pipeline: 'p',
    source: { kind: 'mysql', uri: `mysql://u:${s}`, serverId: -1 },
    sink: STDOUT,
    tables: TABLES,
  }),
  (s) => ({ pipeline: 'p', source: { kind: 'postgres', uri: s, slotName: 's' }, sink: STDOUT, tables: TABLES }),
  (s) => ({ pipeline: 'p', source: { kind: 'postgres', pasword: s, slotName: 's' }, sink: STDOUT, tables: TABLES }),
  (s) => ({
    pipeline: 'p',
    source: { kind: 'postgres', postgres: { host: 'h', password: [s] }, slotName: 's' },
    sink: STDOUT,
  }),
  (s) => ({
    pipeline: 'p',
    source: { kind: `postgres://u:${encodeURIComponent(s)}@h/d` },
    sink: STDOUT,
    tables: TABLES,
  }),
  (s) => ({ pipeline: 'p', source: { driver: 7, config: { password: `${s}\${oops` } }, sink: STDOUT, tables: TABLES }),
  (s) => ({
    pipeline: 'p',
    source: { driver: './d', config: {} },
    sink: { type: 'clickhouse', clientSecret: s },
    tables: TABLES,
  }),
  // Without the blank after its colon, `password:…` is the name of a field.
  (s) => ({ pipeline: 'p', source: { kind: 'postgres', [`password:${s}`]: null }, sink: STDOUT, tables: TABLES }),
  (s) => ({ pipeline: 'p', source: { kind: 'postgres', postgres: `password:${s}` }, sink: STDOUT, tables: TABLES }),
  (s) => ({ pipeline: 'p', source: { kind: 'postgres', password: s }, sink: `uri:${s}`, tables: s }),
];

test('no secret shows when a text is not YAML', () => {
  fc.assert(
    fc.property(
      secretText,
      fc.constantFrom('"', '[', '{', '&', '*', '!', '|', '%', '@', '`', '\t- '),
      (text, opener) => {
        const problems = problemsOf(`pipeline: p\nsource:\n  uri: ${opener}${text}\n uri: "${text}`);

        expect(problems.map(renderProblem).join('\n')).not.toContain('Zq7');
      },
    ),
  );
});

test('no secret shows when it is the whole file, as with the path of a secret in the place of the pipeline’s', () => {
  fc.assert(
    fc.property(secretText, (text) => {
      const problems = problemsOf(text);

      expect(problems.length).toBeGreaterThan(0);
      expect(problems.map(renderProblem).join('\n')).not.toContain('Zq7');
    }),
  );
});

test('a value from the environment shows as it was written', () => {
  const text = 'pipeline: "${env:NAME}"\nsource: {driver: ./d}\nsink: {type: stdout}\ntables: [{source: a, target: a}]';

  expect(problemsOf(text, { NAME: 'not a name' })[0]?.what).toMatch(/came "\$\{env:NAME\}"$/);
});

function load(file: object | string, env: Record<string, string> = {}) {
  const text = typeof file === 'string' ? file : JSON.stringify(file);
  return loadPipeline('p.yaml', { env, readFile: () => text });
}

function problemsOf(file: object | string, env: Record<string, string> = {}) {
  try {
    load(file, env);
    return [];
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    return error.problems;
  }
}

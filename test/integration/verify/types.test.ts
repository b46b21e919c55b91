import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../../services/databases.ts';
import { startHost } from '../cli/host-command.ts';
import { testFolder } from '../pipeline/host-process.ts';
import { CREATE_TYPES, EDGES } from '../postgres/type-edges.ts';
import { verify } from './verify-command.ts';

/** Both sides of `public.t`, with a host that streams it. */
async function streaming(fill: (source: FreshDatabase, copy: FreshDatabase) => Promise<void>) {
  const source = await freshDatabase(inject('postgres18'), 'types_src');
  const copy = await freshDatabase(inject('postgres15'), 'types_dst');
  await fill(source, copy);
  const file = join(testFolder(), 'pipeline.yaml');
  writeFileSync(
    file,
    `pipeline: types
source: { kind: postgres, uri: '${source.uri}', slotName: ${source.name} }
sink: { type: postgres, uri: '${copy.uri}' }
tables: [{ source: public.t, target: t }]
`,
  );
  const host = startHost(['run', '-f', file]);
  await host.until('table is streaming table=public.t');
  return { source, copy, file };
}

test('every type is equal in a mirror, and every column that was changed there is named', async () => {
  const types = Object.entries(EDGES);
  const { copy, file } = await streaming(async (source, copy) => {
    for (const { client } of [source, copy]) await client.query(CREATE_TYPES);
    const columns = types.map(([type], n) => `c${n} ${type}`);
    await source.client.query(`create table t (id int primary key, ${columns.join(', ')})`);
    const rows = Math.max(...types.map(([, edges]) => edges.length));
    for (let row = 0; row < rows; row++) {
      const values = types.map(([, edges]) => edges[row] ?? 'null');
      await source.client.query(`insert into t values (${row}, ${values.join(', ')})`);
    }
  });

  expect(await verify(file, {})).toMatchObject({ code: 0, stderr: '', tables: [{ result: 'equal' }] });

  await copy.client.query(
    `update t set ${types.map(([, edges], n) => `c${n} = ${edges[1] ?? 'null'}`).join(', ')} where id = 0`,
  );

  const { code, tables } = await verify(file, {});
  expect(code).toBe(1);
  expect(tables[0]!.comparison!.found).toEqual([
    { kind: 'different', key: 'id=0', columns: types.map((_, n) => `c${n}`) },
  ]);
});

test('a key that becomes another form of the same value is that form in the destination too', async () => {
  const { source, file } = await streaming(async (source) => {
    await source.client.query(`
      create table t (n numeric, f float8, j jsonb, v text, primary key (n, f, j));
      insert into t values (1.0, '-0', '1', 'x'), (2.0, '2', '2', 'x')`);
  });
  await source.client.query("update t set n = 1.00, f = '0', j = '1.0' where n = 1");

  expect(await verify(file, {})).toMatchObject({ code: 0, stderr: '', tables: [{ result: 'equal' }] });
});

/** Types of a source and of a target that holds them, with a value and what the target is then made to hold instead. */
const WIDER: readonly [source: string, target: string, value: string, instead: string][] = [
  ['smallint', 'bigint', '-7', '7'],
  ['integer', 'numeric(14,2)', '100', '100.01'],
  ['bigint', 'numeric', '9007199254740993', '9007199254740992'],
  ['oid', 'numeric(20,0)', '4294967295', '4294967294'],
  ['real', 'double precision', '0.1', '0.1'],
  ['numeric(12,2)', 'numeric(20,6)', '-0.50', '-0.500001'],
  ['numeric(12,2)', 'numeric', '1200', '1200.001'],
  ['varchar(5)', 'text', "'abc'", "'abc '"],
  ['mood', 'text', "'sad'", "'Sad'"],
  ['json', 'jsonb', `'{"b": 1.50, "a": [1e2, null]}'`, `'{"a": [100, null], "b": 1.500000001}'`],
  ['jsonb', 'text', `'{"b": 1, "a": 2}'`, `'{"a": 2, "b": "1"}'`],
  ['timestamp(3)', 'timestamp(3)', "'2024-02-29 12:00:00.125'", "'2024-02-29 12:00:00.124'"],
];

test('a target with other types that hold the values is equal, and still shows each difference', async () => {
  const { copy, file } = await streaming(async (source, copy) => {
    await source.client.query(CREATE_TYPES);
    const columns = (side: 0 | 1) => WIDER.map((row, n) => `c${n} ${row[side]}`).join(', ');
    await source.client.query(`create table t (id int primary key, ${columns(0)})`);
    await source.client.query(`insert into t values (1, ${WIDER.map(([, , value]) => value).join(', ')})`);
    await source.client.query('insert into t (id) values (2)');
    // What only the target has does not matter, whatever its type.
    await copy.client.query(
      `create table t (noted timestamptz default now(), ${columns(1)}, id bigint primary key, tags int[])`,
    );
  });

  expect(await verify(file, {})).toMatchObject({
    code: 0,
    stderr: '',
    tables: [{ result: 'equal', comparison: { rows: { source: 2, destination: 2 } } }],
  });

  await copy.client.query(
    `update t set ${WIDER.map(([, , , instead], n) => `c${n} = ${instead}`).join(', ')} where id = 1`,
  );

  const { tables } = await verify(file, {});
  expect(tables[0]!.comparison!.found).toEqual([
    { kind: 'different', key: 'id=1', columns: WIDER.map((_, n) => `c${n}`) },
  ]);
});

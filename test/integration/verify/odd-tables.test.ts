import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { ownPostgres, postgresUri } from '../../services/postgres.ts';
import { hostCommand, startHost } from '../cli/host-command.ts';
import { testFolder } from '../pipeline/host-process.ts';
import { verify } from './verify-command.ts';

test('partitioned tables and tables of keys alone are compared with the last slot that the server has; without one the sentence says so', async () => {
  const server = await ownPostgres({ settings: { max_replication_slots: '2' } });
  const connect = async (database: string) => {
    const client = new pg.Client({ connectionString: postgresUri(server, database) });
    client.on('error', () => {});
    await client.connect();
    onTestFinished(() => client.end().catch(() => {}));
    return client;
  };
  const source = await connect('postgres');
  await source.query('create database copy');
  const copy = await connect('copy');
  await source.query(`
    create table parts (id int primary key, v text) partition by range (id);
    create table parts_low partition of parts for values from (0) to (500);
    create table parts_high partition of parts for values from (500) to (1000);
    insert into parts select n, 'v' || n from generate_series(0, 999) n;
    create table keys (a int, b text, primary key (a, b));
    insert into keys select n, 'b' from generate_series(1, 100) n`);
  await copy.query(`
    create table parts (id int primary key, v text) partition by hash (id);
    create table parts_0 partition of parts for values with (modulus 2, remainder 0);
    create table parts_1 partition of parts for values with (modulus 2, remainder 1)`);
  const file = join(testFolder(), 'pipeline.yaml');
  writeFileSync(
    file,
    `pipeline: odd
source: { kind: postgres, uri: '${postgresUri(server, 'postgres')}', slotName: odd }
sink: { type: postgres, uri: '${postgresUri(server, 'copy')}' }
tables: [{ source: public.parts, target: parts }, { source: public.keys, target: keys }]
`,
  );
  const host = startHost(['run', '-f', file]);
  await host.until('table is streaming table=public.parts');
  await host.until('table is streaming table=public.keys');

  expect(await verify(file, {})).toMatchObject({ code: 0, stderr: '' });

  await copy.query(`
    delete from parts where id = 1; update parts set v = 'planted' where id = 900; insert into parts values (5000, 'x');
    delete from keys where a = 7; insert into keys values (7, 'c');
    alter table keys drop constraint keys_pkey; insert into keys values (8, 'b')`);

  const { code, tables } = await verify(file, {});
  expect(code).toBe(1);
  const found = tables.map(({ comparison }) => comparison!.found.map(({ kind, key }) => `${kind} ${key}`).sort());
  expect(found).toEqual([
    ['different id=900', 'extra id=5000', 'missing id=1'],
    ['duplicated a=8, b=b', 'extra a=7, b=c', 'missing a=7, b=b'],
  ]);

  await source.query("select pg_create_logical_replication_slot('other', 'pgoutput')");
  const full = await hostCommand(['verify', '-f', file, '--tables', 'keys']);
  expect(full.code).toBe(3);
  expect(full.stdout).toContain(
    'public.keys -> public.keys: not compared: postgres source: all replication slots are in use',
  );
  expect(full.stdout).toContain('  remedy: Raise max_replication_slots');
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { readBack } from '../../../host/cli/read-back.ts';
import { findDriver } from '../../../host/driver-packages/find.ts';
import { readDestination } from '../../../host/flight/read-destination.ts';
import type { Log } from '../../../host/observe/log.ts';
import { loadPipeline } from '../../../host/spec/load.ts';
import { freshDatabase } from '../../services/databases.ts';
import { recordingShell } from '../../unit/host/cli/recording-shell.ts';
import { testFolder } from '../pipeline/host-process.ts';

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => SILENT };
const { places } = recordingShell();

/** Reads a target back as a command does: by the reader that the sink's own manifest names. */
async function rowsOf(sink: string, table: string): Promise<Record<string, unknown>[]> {
  const file = join(testFolder(), 'pipeline.yaml');
  writeFileSync(
    file,
    `pipeline: p\nsource: { kind: postgres, uri: postgresql://h/d, slotName: s }\nsink: ${sink}\ntables: [{ source: public.t, target: t }]\n`,
  );
  const { pipeline } = loadPipeline(file, { env: {} });
  const driver = await findDriver(pipeline.sink.driver, 'sink', places);
  const { config } = pipeline.sink;
  const signal = new AbortController().signal;
  const options = { driver, config, settings: pipeline.supervision, log: SILENT, random: Math.random };
  const withReader = await readBack(options, signal);
  return withReader(async (client) => {
    const picture = await readDestination(client, table);
    expect(picture.endOffset).toBe('');
    const rows: Record<string, unknown>[] = [];
    for await (const batch of picture.batches()) rows.push(...batch.toArray().map((row) => row.toJSON()));
    return rows;
  });
}

test('a target is read back by the name that the sink knows it by, with a user that may only select', async () => {
  const { client, uri, name } = await freshDatabase(inject('postgres18'), 'read_back');
  await client.query(`
    create schema bronze;
    create table bronze.c_orders (id bigint primary key, tags int[], at interval, note text);
    insert into bronze.c_orders values (1, '{1,2}', '1 day', null), (2, null, null, 'x');
    create role ${name} login; grant usage on schema bronze to ${name}; grant select on bronze.c_orders to ${name}`);
  const address = new URL(uri);
  address.username = name;
  try {
    const rows = await rowsOf(`{ type: postgres, uri: '${address}', namespace: bronze, tablePrefix: c_ }`, 'orders');

    expect(rows).toEqual([
      { id: 1n, tags: '{1,2}', at: 'P1D', note: null },
      { id: 2n, tags: null, at: null, note: 'x' },
    ]);
  } finally {
    await client.query(`drop owned by ${name}; drop role ${pg.escapeIdentifier(name)}`);
  }
});

test('a destination that cannot be read back, has no such table, holds what no row can be, or is away is named as the destination', async () => {
  const { client, uri } = await freshDatabase(inject('postgres18'), 'read_back');

  await expect(rowsOf('{ type: stdout }', 't')).rejects.toMatchObject({
    code: 'config-invalid',
    message: 'what the sink stdout wrote cannot be read back: its driver has no reader',
  });
  await expect(rowsOf(`{ type: postgres, uri: '${uri}' }`, 'nothing')).rejects.toMatchObject({
    code: 'table-not-found',
    message: expect.stringContaining('public.nothing does not exist in the destination'),
  });
  await client.query("create table t (id int primary key, at timestamp); insert into t values (7, 'infinity')");
  await expect(rowsOf(`{ type: postgres, uri: '${uri}' }`, 't')).rejects.toMatchObject({
    code: 'row-refused',
    message: expect.stringMatching(/^the destination, read back: public\.t, row id=7: column at: .* came infinity/),
    remedy: expect.stringContaining('correct or delete the row in the destination'),
  });
  await expect(rowsOf(`{ type: postgres, uri: 'postgresql://127.0.0.1:1/d' }`, 't')).rejects.toMatchObject({
    code: 'sink-unavailable',
    message: expect.stringContaining('the destination, read back'),
  });
});

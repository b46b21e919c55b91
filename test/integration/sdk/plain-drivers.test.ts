import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  ACTION,
  asIpcStream,
  decodeSchema,
  ENV,
  encodeSchemaHeader,
  shapeOfChanges,
  shapeOfRows,
} from '@urutau/contract';
import { StructRow, tableFromIPC } from 'apache-arrow';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Change, putBatch, putStart } from './change-messages.ts';
import { spawnDriver, startDriver } from './driver-process.ts';
import { collect, type FlightClient, type FlightInfo } from './flight-client.ts';

const SOURCE = fixture('plain-source');
const SINK = fixture('plain-sink');
const UNAUTHENTICATED = 16;
const FAILED_PRECONDITION = 9;

const COLUMNS = { id: 'int64', name: 'utf8', price: 'float64', paid: 'bool', at: 'timestamp' };
const TABLES = { orders: { key: ['id'], columns: COLUMNS } };
const full = { id: 1, name: 'tea', price: 2.5, paid: true, at: '2026-11-30T10:00:00.123Z' };
const fullRead = { id: 1n, name: 'tea', price: 2.5, paid: true, at: Date.parse(full.at) };
const sparse = { id: '9007199254740993' };
const sparseRead = { id: 9007199254740993n, name: null, price: null, paid: null, at: null };

test('the source’s snapshot is the state at its end offset, and the changes go on from there', async () => {
  const script = changeScript([
    { table: 'orders', op: 'c', after: { id: 1, name: 'old' } },
    { table: 'other', op: 'c', after: { id: 1 } },
    { table: 'orders', op: 'u', before: { id: 1 }, after: full },
    { table: 'orders', op: 'c', after: { id: 2 } },
    { table: 'orders', op: 'd', before: { id: 2 } },
    { table: 'orders', op: 'c', after: sparse },
  ]);
  const { client } = await startDriver({
    role: 'source',
    program: SOURCE,
    config: { file: script.path, tables: TABLES },
  });

  const snapshot = await client.info({ table: 'orders', mode: 'snapshot' });
  const rows = await read(client, snapshot);
  const { endOffset } = JSON.parse(snapshot.appMetadata.toString());
  const changes = await client.info({ table: 'orders', mode: 'changes', fromOffset: endOffset });
  script.append([{ table: 'orders', op: 'd', before: { id: 1 } }]);
  const [change] = await read(client, changes, 1);

  expect(rows).toEqual([fullRead, sparseRead]);
  expect(change).toMatchObject({ op: 'd', before: { id: 1n }, after: null, ts_source: null });
  expect(shapeOfRows(decodeSchema(snapshot.schema)).fields.map(({ name }) => name)).toEqual(Object.keys(COLUMNS));
  expect(shapeOfChanges(decodeSchema(changes.schema), 'orders').before).toBe('key');
});

test('every offset of the source is a point to go on from', async () => {
  const ids = [1, 2, 3, 4, 5];
  const script = changeScript(
    ids.map((id) => ({ table: 'orders', op: 'c', after: { id }, ts: '2026-11-30T10:00:00Z' })),
  );
  const { client } = await startDriver({
    role: 'source',
    program: SOURCE,
    config: { file: script.path, tables: TABLES },
  });
  const all = await read(client, await client.info({ table: 'orders', mode: 'changes' }), ids.length);

  for (const [index, { offset }] of all.slice(0, -1).entries()) {
    const fromOffset = Buffer.from(offset).toString('base64');
    const rest = await read(client, await client.info({ table: 'orders', mode: 'changes', fromOffset }), 1);
    expect(rest).toEqual(all.slice(index + 1));
  }
  expect(all[0]).toMatchObject({
    op: 'c',
    after: { id: 1n },
    before: null,
    ts_source: Date.parse('2026-11-30T10:00:00Z'),
  });
});

test('the source tells its lag while it streams, and refuses an offset that is not of its log', async () => {
  const script = changeScript([{ table: 'orders', op: 'c', after: { id: 1 } }]);
  const { client } = await startDriver({
    role: 'source',
    program: SOURCE,
    config: { file: script.path, tables: TABLES },
  });
  const call = client.read((await client.info({ table: 'orders', mode: 'changes' })).endpoint[0]!.ticket.ticket);
  call.resume();

  await vi.waitFor(async () => {
    const status = await client.action(ACTION.status);
    expect(status).toMatchObject({ state: 'streaming', tables: { orders: { offset: 'AAAAAAAAAAE=', lagEvents: 0 } } });
  });
  call.cancel();
  for (const fromOffset of ['AAAAAAAAAAI=', 'AA==']) {
    await expect(client.info({ table: 'orders', mode: 'changes', fromOffset })).rejects.toMatchObject({
      code: FAILED_PRECONDITION,
    });
  }
});

test('the sink keeps the last row of each key, durably from a flush on, and a repeat changes nothing', async () => {
  const file = join(temporaryFolder(), 'rows.json');
  const options = { role: 'sink', program: SINK, config: { file, tables: { orders: ['id'] } } } as const;
  const changes: Change[] = [
    { op: 'c', id: 1, name: 'tea' },
    { op: 'c', id: 2, name: 'salt' },
    { op: 'u', id: 1, name: null },
    { op: 'd', id: 2 },
    { op: 'c', id: 3, name: 'oil' },
  ];
  const first = await startDriver(options);
  await first.client.write([putStart('orders'), putBatch(changes)]);

  expect(existsSync(file)).toBe(false);
  await first.client.action(ACTION.flush);
  first.child.kill('SIGKILL');
  const second = await startDriver(options);
  await second.client.write([putStart('orders'), putBatch(changes)]);
  await second.client.action(ACTION.flush);

  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    orders: [
      { id: 1, name: null },
      { id: 3, name: 'oil' },
    ],
  });
});

test('both know the base alone, refuse calls without the bearer, and end in order', async () => {
  const source = await startDriver({
    role: 'source',
    program: SOURCE,
    config: { file: changeScript([]).path, tables: TABLES },
  });
  const sink = await startDriver({ role: 'sink', program: SINK, config: { file: '/nowhere/rows', tables: {} } });
  const base = [ACTION.heartbeat, ACTION.shutdown, ACTION.status];

  expect((await source.client.listActions()).toSorted()).toEqual(
    [ACTION.cancelFlightInfo, ...base, ACTION.listTables].toSorted(),
  );
  expect((await sink.client.listActions()).toSorted()).toEqual([ACTION.flush, ...base].toSorted());
  const { rpc } = sink.client;
  await expect(collect(rpc.doPut())).rejects.toMatchObject({ code: UNAUTHENTICATED });
  await expect(collect(source.client.rpc.doGet({}))).rejects.toMatchObject({ code: UNAUTHENTICATED });

  await source.client.action(ACTION.shutdown);
  sink.child.kill('SIGTERM');
  expect(await Promise.all([source.exited, sink.exited])).toEqual(['code 0', 'code 0']);
});

test.each([
  { role: 'source', program: SOURCE },
  { role: 'sink', program: SINK },
] as const)('a plain $role exits 2 and names the variable that is missing', async ({ role, program }) => {
  for (const name of [ENV.stage, ENV.token, ENV.config, ENV.pluginDir, ENV.protocolVersion, ENV.socket]) {
    const driver = spawnDriver({
      role,
      program,
      config: { file: '/nowhere/rows', tables: {} },
      env: { [name]: undefined },
    });

    expect(await driver.exited).toBe('code 2');
    expect(driver.stderr()).toContain(name);
  }
});

// biome-ignore lint/suspicious/noExplicitAny: a row of whatever table
type Row = Record<string, any>;

/** The rows of a read: all of them, or of an endless one as soon as `enough` have come. */
async function read(client: FlightClient, info: FlightInfo, enough = Infinity): Promise<Row[]> {
  const schemaHeader = encodeSchemaHeader(decodeSchema(info.schema));
  const rows: Row[] = [];
  for await (const { dataHeader, dataBody } of client.read(info.endpoint[0]!.ticket.ticket)) {
    if (dataBody.length === 0) continue;
    const table = tableFromIPC(asIpcStream(schemaHeader, dataHeader, dataBody));
    for (const row of table.toArray()) rows.push(withPlainImages(row.toJSON()));
    if (rows.length >= enough) break;
  }
  return rows;
}

/** The structs of a row as plain objects. */
function withPlainImages(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    value instanceof StructRow ? value.toJSON() : value,
  ]);
  return Object.fromEntries(entries);
}

function changeScript(changes: object[]): { path: string; append(changes: object[]): void } {
  const path = join(temporaryFolder(), 'changes.jsonl');
  const text = (lines: object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  writeFileSync(path, text(changes));
  return { path, append: (more) => appendFileSync(path, text(more)) };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../fixtures/drivers/${name}/main.mjs`, import.meta.url));
}

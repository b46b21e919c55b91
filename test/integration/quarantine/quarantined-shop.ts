import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, waitFor } from '../pipeline/host-process.ts';

const MAIN = resolve(import.meta.dirname, '../../../host/dist/main.js');
const run = promisify(execFile);

export interface ShopOptions {
  /** SQL at the source before the host starts. */
  before?: string;
  /** SQL at the destination before the host starts; `orders` is made by it or by the host. */
  target?: string;
  flush?: Record<string, unknown>;
  table?: Record<string, unknown>;
  /** Of the first host. */
  env?: Record<string, string>;
}

export const TARGET = `create table orders (id int primary key, amount int, note text, constraint small check (amount < 1000))`;

/** `orders` with `onPoison: quarantine`, into a target that refuses amounts from 1,000 on, and `customers` beside it. */
export async function quarantinedShop({
  before = '',
  target = TARGET,
  flush = {},
  table = {},
  env = {},
}: ShopOptions = {}) {
  const source = await freshDatabase(inject('postgres18'), 'quarantine_src');
  const sink = await freshDatabase(inject('postgres18'), 'quarantine_dst');
  await source.client.query(`
    create table orders (id int primary key, amount int, note text);
    create table customers (id int primary key, name text);
    insert into orders select i, i, 'n' from generate_series(1, 100) i;
    insert into customers select i, 'c' from generate_series(1, 100) i;
    ${before}
  `);
  await sink.client.query(target);
  const pipeline = {
    pipeline: 'shop',
    source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
    sink: { type: 'postgres', uri: sink.uri, flush: { interval: '50ms', ...flush } },
    tables: [
      { source: 'public.orders', target: 'orders', onPoison: 'quarantine', ...table },
      { source: 'public.customers', target: 'customers' },
    ],
  };
  const host = new HostProcess({ pipeline });
  host.startWith(env);
  const streaming = () =>
    host.until('streaming', ({ tables }) => tables.every(({ state }) => state === 'streaming'), 90_000);

  const rowsOf = async (client: typeof source.client, sql: string): Promise<Record<string, unknown>[]> =>
    (await client.query(sql)).rows;
  /** Waits until the destination has taken everything that is committed at the source by now. */
  const caughtUp = async () => {
    const name = `marker ${Math.random()}`;
    await source.client.query('insert into customers select max(id) + 1, $1 from customers', [name]);
    await waitFor(
      'the marker at the destination',
      60_000,
      async () =>
        (await rowsOf(sink.client, `select from customers where name = '${name}'`)).length > 0 ? true : null,
      () => host.output.slice(-4000),
    );
    // Tables commit one by one: orders may still be behind.
    await source.client.query(`insert into orders values (1000000 + (random() * 1e8)::int, 1, $1)`, [name]);
    await waitFor(
      'the marker in orders',
      60_000,
      async () => ((await rowsOf(sink.client, `select from orders where note = '${name}'`)).length > 0 ? true : null),
      () => host.output.slice(-4000),
    );
  };
  const orders = 'select id, amount, note from orders order by id';
  /** Ids at which the two sides differ. */
  const differences = async (): Promise<number[]> => {
    const text = (rows: Record<string, unknown>[]) =>
      new Map(rows.map((row) => [row['id'] as number, JSON.stringify(row)]));
    const [theirs, ours] = [text(await rowsOf(source.client, orders)), text(await rowsOf(sink.client, orders))];
    return [...new Set([...theirs.keys(), ...ours.keys()])]
      .filter((id) => theirs.get(id) !== ours.get(id))
      .sort((a, b) => a - b);
  };
  const letters = () =>
    rowsOf(
      sink.client,
      `select key, op, code, ordinal::text, image, position from urutau_dead_letters where target = 'public.orders' order by ordinal`,
    );
  const command = async (...args: string[]) => {
    const [first, second, ...rest] = args;
    const all = [MAIN, first!, second!, '-f', host.file, '--state-dir', host.stateDir, ...rest];
    try {
      const { stdout } = await run(process.execPath, all, { env: process.env });
      return { code: 0, stdout };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, stdout: stdout + stderr };
    }
  };
  const mend = () => sink.client.query('alter table orders drop constraint if exists small');
  return { source, sink, host, streaming, caughtUp, differences, letters, command, mend, rowsOf };
}

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { seeded } from '../../oracle/random.ts';

export const BIG_BYTES = 100_000;

/** What is replicated of them. */
export const TABLES = {
  accounts: { key: ['id'], columns: 'id, uid, rev, name, amount, at, ok, big, doc, score' },
  items: { key: ['sku', 'region'], columns: 'sku, region, uid, rev, payload' },
} as const;

/**
 * Tables of the workload: `accounts` with keys on both sides of 2^53, values of 100 kB kept out of line, and numbers of
 * every kind; `items` with a composite text key. `truth` is written in the same transactions and never replicated.
 */
export async function createTables(
  client: pg.Client,
  { rows, identity }: { rows: number; identity: 'default' | 'full' },
) {
  await client.query(`
    create sequence rev;
    create table accounts (
      id bigint primary key, uid bigint not null, rev bigint not null, name text, amount numeric(12,2),
      at timestamptz, ok boolean, big text, doc jsonb, score double precision);
    alter table accounts alter big set storage external;
    create table items (
      sku text, region text, uid bigint not null, rev bigint not null, payload text, primary key (sku, region));
    create table truth (n bigserial primary key, tab text not null, uid bigint not null, op text not null, rev bigint not null);
    ${identity === 'full' ? 'alter table accounts replica identity full; alter table items replica identity full;' : ''}
    insert into accounts
      select case when i % 2 = 0 then i else 9007199254740993 + i end, i, nextval('rev'), 'name ' || i, i * 1.37,
        timestamptz '2026-01-01' + i * interval '1.000123 s', i % 3 = 0,
        case when i % 200 = 0 then repeat(md5(i::text), ${BIG_BYTES / 32}) end, jsonb_build_object('k', i), i * 1.000123
      from generate_series(1, ${rows}) i;
    insert into items
      select 'sku-' || i, (array['eu','us','åø'])[1 + i % 3], i, nextval('rev'), repeat('p', i % 500)
      from generate_series(1, ${rows}) i;
    insert into truth (tab, uid, op, rev) select 'accounts', uid, 'c', rev from accounts order by uid;
    insert into truth (tab, uid, op, rev) select 'items', uid, 'c', rev from items order by uid;
  `);
}

/**
 * Runs random transactions until told to stop: inserts, updates (most leave the big value alone), deletes, key changes.
 * With `reconnect` it outlives its server; what became of a commit without an answer is in `truth` like everything.
 */
export class Workload {
  readonly #reconnect: (() => Promise<pg.Client>) | undefined;
  #client: pg.Client;
  readonly #random: () => number;
  #nextUid: number;
  #running: Promise<void> | null = null;
  #stop = false;
  transactions = 0;

  constructor(
    client: pg.Client,
    { seed, rows, reconnect }: { seed: number; rows: number; reconnect?: () => Promise<pg.Client> },
  ) {
    this.#client = client;
    this.#reconnect = reconnect;
    this.#random = seeded(seed);
    this.#nextUid = rows + 1;
  }

  start(): void {
    this.#stop = false;
    this.#running = (async () => {
      while (!this.#stop) {
        try {
          await this.transaction();
        } catch (error) {
          if (!this.#reconnect) throw error;
          await this.#connectAgain(this.#reconnect);
        }
      }
    })();
  }

  async #connectAgain(reconnect: () => Promise<pg.Client>): Promise<void> {
    await this.#client.end().catch(() => {});
    this.#nextUid += 1_000; // Those of the transaction that broke may be there, or may not.
    while (!this.#stop) {
      try {
        this.#client = await reconnect();
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  async stop(): Promise<void> {
    this.#stop = true;
    await this.#running;
  }

  async transaction(): Promise<void> {
    const statements = 1 + Math.floor(-Math.log(1 - this.#random()) * 4);
    await this.#client.query('begin');
    for (let i = 0; i < statements; i++) await this.#statement();
    await this.#client.query('commit');
    this.transactions++;
  }

  async #statement(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.35) return this.#insert();
    if (dice < 0.7) return this.#update();
    if (dice < 0.85) return this.#delete();
    return this.#changeKey();
  }

  async #insert(): Promise<void> {
    const uid = this.#nextUid++;
    const id = this.#random() < 0.5 ? uid : 9007199254740993n + BigInt(uid);
    if (this.#random() < 0.5) {
      const big = this.#random() < 0.05 ? randomBytes(BIG_BYTES / 2).toString('hex') : null;
      await this.#client.query(
        `with a as (insert into accounts values ($1, $2, nextval('rev'), $3, $4, now(), $5, $6, '{"n": 1}', $7) returning uid, rev)
         insert into truth (tab, uid, op, rev) select 'accounts', uid, 'c', rev from a`,
        [id, uid, `n${uid}`, '-123456789.01', uid % 2 === 0, big, this.#random()],
      );
    } else {
      await this.#client.query(
        `with a as (insert into items values ($1, 'eu', $2, nextval('rev'), $3) returning uid, rev)
         insert into truth (tab, uid, op, rev) select 'items', uid, 'c', rev from a`,
        [`sku-${uid}`, uid, 'x'.repeat(uid % 50)],
      );
    }
  }

  #update(): Promise<void> {
    return this.#random() < 0.6
      ? this.#change('accounts', `set rev = nextval('rev'), amount = amount + 1`, 'u')
      : this.#change('items', `set rev = nextval('rev'), payload = payload || '!'`, 'u');
  }

  #delete(): Promise<void> {
    return this.#random() < 0.5 ? this.#change('accounts', null, 'd') : this.#change('items', null, 'd');
  }

  #changeKey(): Promise<void> {
    return this.#random() < 0.5
      ? this.#change('accounts', `set rev = nextval('rev'), id = id + 1000000000000`, 'u')
      : this.#change('items', `set rev = nextval('rev'), sku = sku || '+'`, 'u');
  }

  /** One to three rows that exist; rows with a big value are as likely as all others together. */
  async #change(table: 'accounts' | 'items', set: string | null, op: 'u' | 'd'): Promise<void> {
    const near = 1 + Math.floor(this.#random() * this.#nextUid);
    const big = table === 'accounts' && this.#random() < 0.5 ? 'and big is not null' : '';
    const limit = 1 + Math.floor(this.#random() * 3);
    const chosen = `select uid from ${table} where uid >= ${near} ${big} order by uid limit ${limit}`;
    const verb = set === null ? `delete from ${table}` : `update ${table} ${set}`;
    const rev = set === null ? `nextval('rev')` : 'rev';
    await this.#client.query(
      `with a as (${verb} where uid in (${chosen}) returning uid, ${rev} as rev)
       insert into truth (tab, uid, op, rev) select '${table}', uid, '${op}', rev from a`,
    );
  }
}

/** Content of a table as one value: equal hashes, equal rows. */
export async function contentOf(
  client: pg.Client,
  table: string,
  columns: string,
  key: string,
): Promise<{ rows: string; hash: string }> {
  const { rows } = await client.query(
    `select count(*) as rows, coalesce(md5(string_agg(h, '' order by h)), '') as hash
     from (select md5(row(${columns})::text) as h from ${table} order by ${key}) hashed`,
  );
  return rows[0];
}

/** The keys at which two databases differ, for a message that helps. */
export async function differences(
  source: pg.Client,
  sink: pg.Client,
  table: string,
  target: string,
  key: string[],
  columns: string,
) {
  const read = async (client: pg.Client, name: string) => {
    const { rows } = await client.query(`select ${key.join(', ')}, md5(row(${columns})::text) as h from ${name}`);
    return new Map(rows.map((row) => [key.map((column) => row[column]).join('/'), row.h as string]));
  };
  const [theirs, ours] = [await read(source, table), await read(sink, target)];
  return {
    missing: [...theirs.keys()].filter((k) => !ours.has(k)).slice(0, 5),
    extra: [...ours.keys()].filter((k) => !theirs.has(k)).slice(0, 5),
    different: [...theirs]
      .filter(([k, h]) => ours.has(k) && ours.get(k) !== h)
      .map(([k]) => k)
      .slice(0, 5),
  };
}

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../../services/databases.ts';

export interface Shop {
  readonly source: FreshDatabase;
  readonly copy: FreshDatabase;
  readonly env: { URUTAU_SOURCE_URI: string; URUTAU_SINK_URI: string };
  /** Of the test's own. */
  readonly folder: string;
  /** A pipeline file that copies both tables, unless it is given others. */
  pipelineFile(sink?: string, tables?: string): string;
}

/** A source with two filled tables and an empty destination. */
export async function shop(): Promise<Shop> {
  const server = inject('postgres18');
  const source = await freshDatabase(server, 'shop');
  const copy = await freshDatabase(server, 'copy');
  await source.client.query(`
    create table orders (id bigint primary key, status text, amount numeric(10,2));
    insert into orders select n, 'open', n * 1.5 from generate_series(1, 1000) n;
    create table items (order_id bigint, line int, name text, primary key (order_id, line));
    insert into items select n, 1, 'thing ' || n from generate_series(1, 500) n;
    analyze`);
  const folder = mkdtempSync(join(tmpdir(), 'urutau-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return {
    source,
    copy,
    env: { URUTAU_SOURCE_URI: source.uri, URUTAU_SINK_URI: copy.uri },
    folder,
    pipelineFile(sink = 'type: postgres', tables = TABLES) {
      const file = join(folder, 'shop.yaml');
      writeFileSync(
        file,
        `pipeline: shop\nsource: { kind: postgres, slotName: ${source.name} }\nsink: { ${sink} }\ntables:\n${tables}`,
      );
      return file;
    },
  };
}

const TABLES = `  - { source: public.orders, target: orders }
  - { source: public.items, target: items }
`;

import { join } from 'node:path';
import { expect, inject } from 'vitest';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess, readJson } from './host-process.ts';

interface Summary {
  rows: number;
  tables: Record<string, { snapshotRows: number; inserts: number }>;
  processes: { role: 'host' | 'source' | 'sink'; peakMemoryBytes: number }[];
}

/** The figures that performance.md promises for a Postgres sink, in bytes. */
const PEAK_BYTES_MAX = { host: 200e6, source: 250e6, sink: 250e6 };

const COLUMNS = `
  id bigint primary key, qty int not null, note text not null, price numeric(12,2) not null, at timestamptz not null,
  ok boolean not null, uid uuid not null, doc jsonb not null, day date not null, score double precision not null`;

const rowsUpTo = (rows: number) => `
  insert into public.wide select i, (i * 7919 % 100000)::int, left(md5(i::text) || md5(i::text), 30 + (i % 31)::int),
    (i % 1000000 * 1.37)::numeric(12,2), timestamptz '2026-01-01' + i * interval '1.000123 s', i % 3 = 0, md5(i::text)::uuid,
    jsonb_build_object('k', i % 100), date '2020-01-01' + (i % 2000)::int, i * 1.000123
  from generate_series(1::bigint, ${rows}) i`;

/** A table of ten columns, and a host that copies it into another database. */
export async function wideTable() {
  const source = await freshDatabase(inject('postgres18'), 'wide_src');
  const sink = await freshDatabase(inject('postgres18'), 'wide_dst');
  await source.client.query(`create table public.wide (${COLUMNS})`);
  const host = new HostProcess({
    pipeline: {
      pipeline: 'wide',
      source: { kind: 'postgres', uri: source.uri, slotName: `s_${source.name}` },
      sink: { type: 'postgres', uri: sink.uri },
      tables: [{ source: 'public.wide', target: 'wide' }],
    },
  });
  const file = join(host.folder, 'summary.json');
  return {
    /** Fills the table in one transaction. */
    fill: (rows: number) => source.client.query(rowsUpTo(rows)),
    /** Runs until everything is there, and checks that it is, within the promised memory. */
    copied: async (rows: number): Promise<Summary> => {
      expect(await host.start('--until-caught-up', '--summary', file).exitCode(), host.output.slice(-4000)).toBe(0);
      const content = `select count(*)::int as rows, sum(hashtextextended(wide::text, 0))::text as hash from public.wide`;
      expect((await sink.client.query(content)).rows).toEqual((await source.client.query(content)).rows);
      const summary = readJson<Summary>(file);
      expect(summary.rows).toBe(rows);
      for (const { role, peakMemoryBytes } of summary.processes) {
        expect(peakMemoryBytes, `${role} took ${Math.round(peakMemoryBytes / 1e6)} MB`).toBeLessThan(
          PEAK_BYTES_MAX[role],
        );
      }
      return summary;
    },
  };
}

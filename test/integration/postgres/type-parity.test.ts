import { builderFor, type ColumnBuilder } from '@urutau/sdk';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { binaryAppender } from '../../../drivers/postgres/source/binary-values.ts';
import { loadTables } from '../../../drivers/postgres/source/catalog.ts';
import { CopyBinaryDecoder } from '../../../drivers/postgres/source/copy-binary.ts';
import { PgoutputDecoder, VALUE } from '../../../drivers/postgres/source/pgoutput.ts';
import { TEXT_SETTINGS, textAppender } from '../../../drivers/postgres/source/text-values.ts';
import { Wire } from '../../../drivers/postgres/source/wire.ts';
import { type ColumnFacts, fieldFor, type SupportedType, typeOf } from '../../../drivers/postgres/types.ts';
import { type FreshDatabase, freshDatabase } from '../../services/databases.ts';
import { CREATE_TYPES, EDGES } from './type-edges.ts';

test.each(['postgres18', 'postgres15'] as const)(
  'on %s every type has the same values in a snapshot and in the stream',
  async (server) => {
    const database = await freshDatabase(inject(server), 'parity');
    const types = Object.entries(EDGES);
    await createTable(
      database,
      types.map(([type]) => type),
    );
    const rows = Math.max(...types.map(([, edges]) => edges.length));
    for (let row = 0; row < rows; row++) {
      await database.client.query(
        `insert into parity values (${row}, ${types.map(([, edges]) => edges[row] ?? 'null')})`,
      );
    }

    const { snapshot, stream } = await readBoth(database, 'Asia/Kolkata');

    expect(stream).toEqual(snapshot);
    expect(snapshot.get('id')?.rows).toBe(rows);
  },
);

/** Each type with an expression over random(). */
const RANDOM: Record<string, string> = {
  real: `((random() - 0.5) * power(10, random() * 75 - 37))::real`,
  'double precision': `(random() - 0.5) * power(10, random() * 600 - 300)`,
  float8: 'random() * 1000',
  bigint: '((random() - 0.5) * power(10, random() * 18))::bigint',
  'numeric(12,2)': '((random() - 0.5) * power(10, random() * 10))::numeric',
  'numeric(30,10)': '(random() - 0.5)::numeric * power(10::numeric, (random() * 20)::int)',
  numeric: '(random() - 0.5)::numeric * power(10::numeric, (random() * 60 - 30)::int)',
  date: "date '4713-01-01 BC' + (random() * 5000000)::int",
  time: "time '00:00' + random() * interval '24 hours'",
  timestamp: "timestamp '4713-01-01 BC' + random() * interval '298000 years'",
  timestamptz: "timestamptz '4712-01-01 BC' + random() * interval '298000 years'",
  uuid: 'md5(random()::text)::uuid',
  bytea: "decode(md5(random()::text), 'hex')",
};

test('random values of the types with more than one way to write a number are the same in a snapshot and in the stream', async () => {
  const seed = Number(process.env['SEED'] ?? Math.random());
  const database = await freshDatabase(inject('postgres18'), 'parity');
  await createTable(database, Object.keys(RANDOM));
  await database.client.query(`select setseed(${seed})`);
  await database.client.query(`insert into parity select n, ${Object.values(RANDOM)} from generate_series(1, 5000) n`);

  // New York had a zone of seconds before 1883.
  const { snapshot, stream } = await readBoth(database, 'America/New_York');

  expect(stream, `SEED=${seed}`).toEqual(snapshot);
});

test.each([
  ['numeric(12,2)', "'NaN'"],
  ['date', "'infinity'"],
  ['date', "'-infinity'"],
  ['time', "'24:00'"],
  ['timestamp', "'infinity'"],
  ['timestamp', "'-infinity'"],
  ['timestamp', "'294276-12-31 23:59:59.999999'"],
  ['timestamptz', "'infinity'"],
])('%s %s is refused with the column in a snapshot and in the stream alike', async (type, value) => {
  const database = await freshDatabase(inject('postgres18'), 'parity');
  await createTable(database, [type]);
  await database.client.query(`insert into parity values (1, ${value})`);
  const columns = await columnsOf(database);

  const refusal = expect.objectContaining({ code: 'row-refused', context: { column: 'c0' } });
  await expect(readSnapshot(database, columns)).rejects.toEqual(refusal);
  await expect(readStream(database, columns, 'UTC')).rejects.toEqual(refusal);
});

/** The column of the first type is `c0`. The slot exists before the first row. */
async function createTable({ client }: FreshDatabase, types: string[]): Promise<void> {
  await client.query(`
    ${CREATE_TYPES};
    create table parity (id int primary key, ${types.map((type, i) => `c${i} ${type}`).join(', ')});
    create publication parity for table parity`);
  await client.query("select pg_create_logical_replication_slot('parity_' || current_database(), 'pgoutput')");
}

/** The finished buffers of a column, in hexadecimal digits. */
type Columns = Map<string, { type: string; rows: number; buffers: string[] }>;

async function readBoth(database: FreshDatabase, timeZone: string): Promise<{ snapshot: Columns; stream: Columns }> {
  const columns = await columnsOf(database);
  const snapshot = await readSnapshot(database, columns);
  return { snapshot, stream: await readStream(database, columns, timeZone) };
}

async function columnsOf({ client }: FreshDatabase): Promise<ColumnFacts[]> {
  const tables = await loadTables(
    async (sql) => (await client.query({ text: sql, rowMode: 'array', types: { getTypeParser: () => String } })).rows,
    ['public.parity'],
  );
  return tables.get('public.parity')!.columns;
}

async function readSnapshot({ uri }: FreshDatabase, columns: ColumnFacts[]): Promise<Columns> {
  const builders = columns.map((column) => builderFor(fieldFor(column)));
  const decoder = new CopyBinaryDecoder({
    columns: columns.map((column, i) => ({
      name: column.column,
      append: binaryAppender(typeOf(column) as SupportedType, builders[i]!, column.column),
      appendNull: () => builders[i]!.appendNull(),
    })),
    rowDone: () => false,
  });
  const selected = columns.map(
    (column) => `${column.column}${(typeOf(column) as SupportedType).copyAsText ? '::text' : ''}`,
  );
  const wire = await Wire.connect({ connectionString: uri });
  onTestFinished(() => wire.close());
  await wire.copy(`copy (select ${selected} from parity order by id) to stdout (format binary)`, {
    copyData: (buffer, start, end) => void decoder.push(buffer, start, end),
  });
  decoder.end();
  return finished(columns, builders);
}

async function readStream(database: FreshDatabase, columns: ColumnFacts[], timeZone: string): Promise<Columns> {
  const builders = columns.map((column) => builderFor(fieldFor(column)));
  const append = columns.map((column, i) =>
    textAppender((typeOf(column) as SupportedType).kind, builders[i]!, column.column),
  );
  const decoder = new PgoutputDecoder();
  for (const frame of await frames(database, timeZone)) {
    const message = decoder.decode(frame, 0, frame.length);
    if (message.kind !== 'insert') continue;
    const { kinds, starts, lengths } = message.after;
    for (const [i, builder] of builders.entries()) {
      if (kinds[i] === VALUE.null) builder.appendNull();
      else append[i]!(frame, starts[i]!, lengths[i]!);
    }
  }
  return finished(columns, builders);
}

async function frames({ client }: FreshDatabase, timeZone: string): Promise<Buffer[]> {
  for (const [name, value] of Object.entries({ ...TEXT_SETTINGS, TimeZone: timeZone })) {
    await client.query(`set ${pg.escapeIdentifier(name)} = ${pg.escapeLiteral(value)}`);
  }
  const { rows } = await client.query<{ data: Buffer }>(
    `select data from pg_logical_slot_get_binary_changes('parity_' || current_database(), null, null,
       'proto_version', '1', 'publication_names', 'parity')`,
  );
  return rows.map(({ data }) => data);
}

function finished(columns: ColumnFacts[], builders: ColumnBuilder[]): Columns {
  return new Map(
    columns.map(({ column, formatted }, i) => {
      const rows = builders[i]!.length;
      const buffers = builders[i]!.finish().buffers.map((bytes) => Buffer.from(bytes).toString('hex'));
      return [column, { type: formatted, rows, buffers }];
    }),
  );
}

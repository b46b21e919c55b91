import { z } from 'zod';
import { WRITE_MODES } from './sink.ts';
import { ON_TRUNCATE } from './source.ts';
import { block, flag, list, mapOf, name, oneOf, tableName, text, wait, whole } from './values.ts';

export const COMPARISONS = ['eq', 'neq', 'lt', 'lte', 'gt', 'gte'] as const;
export const FILTER_OPS = [...COMPARISONS, 'in', 'not_in', 'is_null', 'is_not_null'] as const;

export const METADATA_NAMES = [
  'op',
  'commit_ts',
  'ingest_ts',
  'position',
  'source_table',
  'phase',
  'stream',
  'shard',
  'sequence',
  'msg_ts',
  'msg_key',
  'headers',
  'enrich_miss',
] as const;

const literal = z.union([z.string(), z.number(), z.bigint(), z.boolean()], { error: 'text, a number, true or false' });

const where = block(
  'A comparison of one column.',
  {
    value: z
      .union([literal, z.array(literal)], { error: 'text, a number, true or false, or a list of them' })
      .describe('What the column is compared with; a list for in and not_in.'),
  },
  { col: name('Column.'), op: oneOf('Operation.', FILTER_OPS) },
);

/** A node is exactly one of its fields; rules/filter.ts says so with a better message than a union would. */
export interface Filter {
  all?: Filter[];
  any?: Filter[];
  not?: Filter;
  where?: z.infer<typeof where>;
}

const filter: z.ZodType<Filter, Filter> = z
  .strictObject(
    {
      get all() {
        return list('All of these hold.', filter).optional();
      },
      get any() {
        return list('One of these holds.', filter).optional();
      },
      get not() {
        return filter.optional();
      },
      where: where.optional(),
    },
    { error: 'a map' },
  )
  .meta({ id: 'filter', description: 'Rows that are taken: exactly one of all, any, not, where.' });

const metadata = block(
  'A further column.',
  {},
  { from: oneOf('What the column holds.', METADATA_NAMES), as: name('Name of the column.') },
);

const column = block(
  'A declared column.',
  { from: text('Where the value lies in the message.'), required: flag('A message without it is refused.') },
  { name: name('Name of the column.'), type: name('Type, as for a cast.') },
);

const bootstrap = block('How a table begins.', {
  mode: oneOf('snapshot (default) copies it; adopt takes the target as it is; adopt-verify compares first.', [
    'snapshot',
    'adopt',
    'adopt-verify',
  ]),
  startAt: oneOf('Where an adopted table begins to follow.', ['current', 'explicit']),
  position: name('The position of an explicit start.', { lengthMax: 8192 }),
});

const enrich = block(
  'A join with a reference table.',
  {
    source: block('Where the reference comes from.', {
      uri: text('Address of the database.'),
      query: text('Query of the reference rows.'),
    }),
    on: z
      .union([z.array(z.string().min(1)), z.record(z.string(), z.string().min(1))], {
        error: 'a list of columns, or a map from own to reference columns',
      })
      .describe('The columns to join on: a list where both sides have one name, else a map from own to reference.'),
    joinType: oneOf('Default left.', ['left', 'left outer', 'inner', 'left semi', 'left anti']),
    select: list('Columns to take, or "*" alone.', name('Column.')),
    as: mapOf('New names: from {table}.{column} to the name.', name('Name.')),
    refresh: wait('Between two readings of the reference, default 5m.'),
    onColdStart: oneOf('What happens to rows before the reference is read.', ['pass', 'drop']),
    maxRows: whole('Most rows of the reference.', { min: 0 }),
  },
  { table: name('Name of the reference in column names.') },
);

export const table = block(
  'One table.',
  {
    primaryKey: list('Key columns, default the source’s own key.', name('Column.')),
    writeMode: oneOf('How rows are written, default upsert.', WRITE_MODES),
    onDelete: oneOf('Append: whether a delete is a row (record, default) or nothing.', ['record', 'skip']),
    onPoison: oneOf('What follows when the sink refuses a row, default pause.', ['pause', 'stop', 'quarantine']),
    onInvalid: oneOf('What follows when a value does not fit its type, default error.', ['error', 'null', 'clamp']),
    onTruncate: oneOf('What follows when the table is truncated, default that of the source.', ON_TRUNCATE),
    schemaChange: oneOf('What follows when the table’s shape changes, default pause.', ['pause', 'evolve', 'ignore']),
    filter: filter,
    filterImmutable: flag('The columns of the filter never change in a row.'),
    columnFilter: list('The columns that are taken.', name('Column.')),
    cast: mapOf('Types of columns, from column to type.', text('Type, such as string or decimal(12,2).')),
    metadata: list('Further columns at the end.', metadata),
    columns: list('Kafka: the columns of a message.', column),
    identity: list('append-idempotent: the metadata columns that name a change.', name('Column.')),
    partitionBy: list(
      'Partitions: column, year, month, day, hour, bucket(N,column), truncate(N,column).',
      name('Partition.'),
    ),
    createIfNotExists: flag('Makes the target when it is missing, default true.'),
    chunkRows: whole('Rows of one snapshot range.', { min: 1 }),
    workers: block('Writers of the table.', {
      number: whole('Writers, default 1.', { min: 0 }),
      max: whole('Most writers.', { min: 0 }),
    }),
    chunkColumn: name('Key column by which a snapshot is divided.'),
    mode: oneOf('cdc (default) follows the log; incremental asks by a cursor column.', ['cdc', 'incremental']),
    cursor: name('Cursor column of the incremental mode.'),
    bootstrap,
    enrich: list('Joins with reference tables.', enrich),
  },
  {
    source: tableName('The source’s own full name, such as public.orders.'),
    target: tableName('The destination’s full name; without a dot the sink’s namespace goes before it.'),
  },
);

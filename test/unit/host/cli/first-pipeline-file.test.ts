import fc from 'fast-check';
import { expect, test } from 'vitest';
import { firstPipelineFile } from '../../../../host/cli/first-pipeline-file.ts';
import { loadPipeline } from '../../../../host/spec/load.ts';

const env = { URUTAU_SOURCE_URI: 'postgres://me@localhost/shop', URUTAU_SINK_URI: 'postgres://me@localhost/copy' };

test('the file names tables with their keys and sizes, and keeps those without a key as comments with the reason', () => {
  const text = firstPipelineFile({
    name: 'shop',
    sink: 'postgres',
    schema: 'contract/schemas/pipeline.schema.json',
    tables: [
      { name: 'public.orders', supportsSnapshot: true, primaryKey: ['id'], estimatedRows: 1200 },
      { name: 'audit.log', supportsSnapshot: true, primaryKey: ['day', 'line'] },
      { name: 'public.Order.Lines', supportsSnapshot: true, primaryKey: ['id'] },
      { name: 'public.notes', supportsSnapshot: true },
    ],
  });

  expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=contract/schemas/pipeline.schema.json');
  expect(text).toContain('  - source: public.orders   # key: id; about 1,200 rows\n    target: orders\n');
  expect(text).toContain('  - source: audit.log   # key: day, line\n    target: audit.log\n');
  // Without its schema it would be a table Lines in a schema Order.
  expect(text).toContain('    target: public.Order.Lines\n');
  expect(text).toContain('have no primary key');
  expect(text).toContain('  # - source: public.notes   # no key\n  #   target: notes\n  #   writeMode: append\n');
});

test.each(['postgres', 'stdout'] as const)(
  'whatever the tables are called, the file for a %s sink is valid',
  (sink) => {
    const part = fc.string({
      minLength: 1,
      maxLength: 20,
      unit: fc.oneof(fc.constantFrom('$', '{', '#', ':', '\n', '"', ' '), fc.string({ minLength: 1, maxLength: 1 })),
    });
    const listing = fc.record({
      name: part.map((name) => `public.${name.replaceAll('.', '_')}`),
      primaryKey: fc.array(part, { minLength: 0, maxLength: 3 }),
    });

    fc.assert(
      fc.property(fc.uniqueArray(listing, { minLength: 1, maxLength: 5, selector: ({ name }) => name }), (listings) => {
        const tables = listings.map((table) => ({ ...table, supportsSnapshot: true }));
        const keyed = listings.filter(({ primaryKey }) => primaryKey.length > 0);
        fc.pre(keyed.length > 0);

        const text = firstPipelineFile({ name: 'shop', sink, tables, schema: 'pipeline.schema.json' });
        const { pipeline } = loadPipeline('shop.yaml', { env, readFile: () => text });

        expect(pipeline.tables.map(({ source }) => source)).toEqual(keyed.map(({ name }) => name));
      }),
    );
  },
);

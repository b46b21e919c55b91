import { expect, test } from 'vitest';
import { wideTable } from '../integration/pipeline/big-tables.ts';

test('a table of ten million rows is copied within the memory that is promised for each process', async () => {
  const { fill, copied } = await wideTable();
  await fill(10_000_000);

  const { tables } = await copied(10_000_000);

  expect(tables['public.wide']).toMatchObject({ snapshotRows: 10_000_000, inserts: 0 });
}, 1_800_000);

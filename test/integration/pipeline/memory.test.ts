import { expect, test } from 'vitest';
import { wideTable } from './big-tables.ts';

test('a transaction of a million rows passes within the memory that is promised for each process', async () => {
  const { fill, copied } = await wideTable();
  await copied(0);
  await fill(1_000_000);

  const { tables } = await copied(1_000_000);

  expect(tables['public.wide']).toMatchObject({ snapshotRows: 0, inserts: 1_000_000 });
}, 300_000);

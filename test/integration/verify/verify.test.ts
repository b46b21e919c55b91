import { expect, test } from 'vitest';
import { hostCommand, startHost } from '../cli/host-command.ts';
import { shop } from '../cli/shop.ts';

/** The result of `verify --output json`, table by table. */
async function verify(file: string, env: Record<string, string>, ...more: string[]) {
  const { code, stdout, stderr } = await hostCommand(['verify', '-f', file, '--output', 'json', ...more], env);
  return { code, stderr, tables: stdout === '' ? [] : JSON.parse(stdout).tables };
}

const LONG_FLUSH = 'type: postgres, flush: { interval: 1h }';

test('planted rows are each named by kind, key and column while the host streams', async () => {
  const { env, source, copy, pipelineFile } = await shop();
  const file = pipelineFile(LONG_FLUSH);
  const host = startHost(['run', '-f', file], env);
  await host.until('table is streaming table=public.orders');
  await host.until('table is streaming table=public.items');

  expect(await verify(file, env)).toMatchObject({
    code: 0,
    stderr: '',
    tables: [
      { source: 'public.orders', result: 'equal', comparison: { rows: { source: 1000, destination: 1000 } } },
      { source: 'public.items', result: 'equal' },
    ],
  });

  await source.client.query("update items set name = 'on its way' where order_id = 9");
  await copy.client.query(`
    delete from orders where id in (5, 6);
    insert into orders values (5000, 'planted', 1);
    update orders set status = 'planted', amount = amount + 1 where id = 7;
    update items set name = null where order_id = 8`);

  const { code, tables } = await verify(file, env);
  expect(code).toBe(1);
  expect(tables[0]).toMatchObject({
    result: 'different',
    comparison: { counts: { missing: 2, extra: 1, different: 1, unsettled: 0 }, left: null },
  });
  const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1);
  expect([...tables[0].comparison.found].sort(byKey)).toEqual([
    { kind: 'missing', key: 'id=5', columns: [] },
    { kind: 'extra', key: 'id=5000', columns: [] },
    { kind: 'missing', key: 'id=6', columns: [] },
    { kind: 'different', key: 'id=7', columns: ['status', 'amount'] },
  ]);
  expect(tables[1].comparison.found).toEqual([{ kind: 'different', key: 'order_id=8, line=1', columns: ['name'] }]);

  const shown = await hostCommand(['verify', '-f', file, '--tables', 'orders', '--show', '1'], env);
  expect(shown.code).toBe(1);
  expect(shown.stdout).toContain(
    'public.orders -> public.orders: different: 2 missing, 1 extra, 1 different (1,000 rows at the source, 999 in the destination)\n',
  );
  expect(shown.stdout).toMatch(/ {2}missing {4}id=[56]\n {2}and 1 more missing\n/);
  expect(shown.stdout).toContain('  different  id=7: status, amount\n');
});

import { expect, test } from 'vitest';
import { waitFor } from '../pipeline/host-process.ts';
import { quarantinedShop } from './quarantined-shop.ts';

test('a refused row goes to the dead letters, its later changes follow it, and replay brings both sides to equality', async () => {
  const shop = await quarantinedShop();
  const { source, host } = shop;
  await shop.streaming();

  await source.client.query(`
    insert into orders select i, case when i = 550 then 5000 else 1 end, 'bulk' from generate_series(501, 600) i`);
  await shop.caughtUp();
  await source.client.query(`update orders set amount = 6000 where id = 550`);
  await source.client.query(`update orders set amount = 7 where id = 550`);
  await source.client.query(`update orders set note = 'fine' where id = 551`);
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([550]);
  expect(await shop.letters()).toMatchObject([
    { key: '{"id":550}', op: 'c', code: 'row-refused', image: '{"id":550,"amount":5000,"note":"bulk"}' },
    { key: '{"id":550}', op: 'u', code: 'follows' },
    { key: '{"id":550}', op: 'u', code: 'follows', image: '{"id":550,"amount":7,"note":"bulk"}' },
  ]);
  const { tables, sessions } = (await host.status())!;
  expect(tables[0]).toMatchObject({
    state: 'streaming',
    quarantined: { keys: 1, last: { key: '{"id":550}', code: 'row-refused' } },
    totals: { quarantined: 3 },
  });
  expect(sessions).toBe(1);
  const verified = await shop.command('verify', '--tables=orders');
  expect(verified).toMatchObject({ code: 1, stdout: expect.stringContaining('  missing     id=550\n') });
  expect(verified.stdout).toContain('  note: 1 key is quarantined, and may differ until `urutau-host table replay');

  await shop.mend();
  const { code, stdout } = await shop.command('table', 'replay', 'orders');
  expect(stdout).toBe('public.orders: 3 dead letters applied, 1 key is quarantined no more\n');
  expect(code).toBe(0);
  await source.client.query(`update orders set note = 'after' where id = 550`);
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([]);
  expect(await shop.letters()).toEqual([]);
}, 180_000);

test('replay of a row that is refused still keeps its key quarantined, and frees the others', async () => {
  const shop = await quarantinedShop();
  const { source } = shop;
  await shop.streaming();
  await source.client.query(`insert into orders values (501, 5000, 'a'), (502, 6000, 'b'), (503, 1, 'c')`);
  await shop.caughtUp();
  expect(await shop.differences()).toEqual([501, 502]);
  await source.client.query(`update orders set amount = 5 where id = 501`);
  await shop.caughtUp();

  const { code, stdout } = await shop.command('table', 'replay', 'public.orders', '--output', 'json');

  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toMatchObject({
    keys: 1,
    changes: 2,
    refused: [{ key: '{"id":502}', code: 'row-refused' }],
  });
  await shop.caughtUp();
  expect(await shop.differences()).toEqual([502]);
  expect(await shop.letters()).toMatchObject([{ key: '{"id":502}', code: 'row-refused' }]);
}, 180_000);

test('a delete of a quarantined key, and moves from it and to it, follow into the dead letters', async () => {
  const shop = await quarantinedShop();
  const { source } = shop;
  await shop.streaming();

  await source.client.query(`insert into orders values (501, 5000, 'moves'), (502, 5000, 'goes'), (503, 3, 'comes')`);
  await source.client.query(`update orders set amount = 9999 where id = 1`);
  await shop.caughtUp();
  await source.client.query(`update orders set id = 601, amount = 1 where id = 501`);
  await source.client.query(`delete from orders where id = 502`);
  await source.client.query(`update orders set id = 502, note = 'came' where id = 503`);
  await source.client.query(`update orders set note = 'moved on' where id = 601`);
  await source.client.query(`insert into orders values (503, 4, 'new'), (501, 8, 'new')`);
  await source.client.query(`delete from orders where id = 1`);
  await shop.caughtUp();

  // Every row that fell behind is in the dead letters, and none of them passed in part.
  expect((await shop.differences()).every((id) => [1, 501, 502, 503, 601].includes(id))).toBe(true);
  await shop.mend();
  const { stdout } = await shop.command('table', 'replay', 'orders');
  expect(stdout).toContain('5 keys are quarantined no more');
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([]);
  expect(await shop.letters()).toEqual([]);
}, 180_000);

test('a row that the snapshot brings and the target refuses is set aside, and the snapshot is done with the others', async () => {
  const shop = await quarantinedShop({ before: `update orders set amount = 5000 where id in (7, 42)` });
  await shop.streaming();
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([7, 42]);
  expect((await shop.letters()).map(({ op }) => op)).toEqual(['c', 'c']);
  // Whoever runs it as a copy is told that it is not one.
  await shop.host.kill();
  expect(await shop.host.start('--until-caught-up').exitCode()).toBe(3);
  shop.host.start();
  await shop.streaming();
  await shop.source.client.query(`delete from orders where id = 7`);
  await shop.caughtUp();
  await shop.mend();
  await shop.command('table', 'replay', 'orders');
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([]);
}, 180_000);

test('a truncate makes the dead letters before it void, and those after it count', async () => {
  const shop = await quarantinedShop({ table: { onTruncate: 'apply' } });
  const { source } = shop;
  await shop.streaming();
  await source.client.query(`insert into orders values (501, 5000, 'before')`);
  await shop.caughtUp();

  await source.client.query(`
    insert into orders values (502, 5000, 'before');
    truncate orders;
    insert into orders values (501, 1, 'after'), (503, 5000, 'after')`);
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([503]);
  await waitFor('void dead letters going', 20_000, async () => ((await shop.letters()).length === 1 ? true : null));
  await shop.mend();
  const { stdout } = await shop.command('table', 'replay', 'orders');
  expect(stdout).toContain('1 key is quarantined no more');
  await shop.caughtUp();
  expect(await shop.differences()).toEqual([]);
}, 180_000);

test('resync empties the quarantined keys and their dead letters', async () => {
  const shop = await quarantinedShop();
  const { source, host } = shop;
  await shop.streaming();
  await source.client.query(`insert into orders values (501, 5000, 'a')`);
  await shop.caughtUp();
  await source.client.query(`update orders set amount = 1 where id = 501`);

  await shop.command('table', 'resync', 'orders');
  await host.until('the copy', ({ tables }) => tables[0]!.state === 'streaming' && tables[0]!.quarantined.keys === 0);
  await shop.caughtUp();

  expect(await shop.differences()).toEqual([]);
  await waitFor('void dead letters going', 20_000, async () => ((await shop.letters()).length === 0 ? true : null));
}, 180_000);

import { expect, test } from 'vitest';
import { OF_QUARANTINE } from '../../chaos/fault-cases.ts';
import { figure } from '../../figures.ts';
import { seeded } from '../../oracle/random.ts';
import { waitFor } from '../pipeline/host-process.ts';
import { quarantinedShop } from './quarantined-shop.ts';

const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

type Shop = Awaited<ReturnType<typeof quarantinedShop>>;

/** Writes to few keys, so that those that are refused are written again, moved and deleted. */
async function write(shop: Shop, random: () => number, statements: number) {
  const key = () => 501 + Math.floor(random() * 12);
  for (let i = 0; i < statements; i++) {
    const amount = random() < 0.3 ? 5000 : Math.floor(random() * 900);
    const dice = random();
    const statement =
      dice < 0.6
        ? `insert into orders values (${key()}, ${amount}, 'n${i}') on conflict (id) do update set amount = excluded.amount, note = excluded.note`
        : dice < 0.8
          ? `delete from orders where id = ${key()}`
          : `update orders set id = ${key()} where id = ${key()} and not exists (select from orders where id = ${key()})`;
    await shop.source.client.query(statement).catch((error: { code?: string }) => {
      if (error.code !== '23505') throw error; // The key that it was to move to is taken.
    });
  }
}

async function replayed(shop: Shop) {
  await waitFor(
    'a replay that goes through',
    90_000,
    async () => {
      if (!shop.host.alive) {
        shop.host.start();
        await shop.streaming();
      }
      return (await shop.command('table', 'replay', 'orders')).code === 0 ? true : null;
    },
    () => shop.host.output.slice(-4000),
  );
}

test.each([...OF_QUARANTINE])(
  'a host that is killed at %s loses no change and brings none back',
  async (point) => {
    const random = seeded(SEED);
    const shop = await quarantinedShop({ env: { URUTAU_FAULT: point } });
    await shop.streaming();
    const over = shop.host.exitCode();
    await shop.source.client.query(`insert into orders values (501, 5000, 'refused'), (502, 5000, 'refused')`);
    if (point === 'host.letters.applied') {
      await shop.caughtUp();
      await write(shop, random, 20);
      await shop.caughtUp();
      await shop.mend();
      expect((await shop.command('table', 'replay', 'orders')).code).not.toBe(0);
    }
    await over;
    await write(shop, random, 20);
    shop.host.start();
    await shop.streaming();
    await shop.caughtUp();

    await shop.mend();
    await replayed(shop);
    await write(shop, random, 20);
    await shop.caughtUp();
    expect(await shop.differences(), `URUTAU_TEST_SEED=${SEED}`).toEqual([]);
    expect(await shop.letters()).toEqual([]);
  },
  240_000,
);

test('under writes to refused keys, kills of host and sink, and replays that are cut short, both sides end equal', async () => {
  const random = seeded(SEED);
  const shop = await quarantinedShop({ flush: { interval: '20ms' } });
  const { host, sink } = shop;
  await shop.streaming();
  for (let round = 0; round < 6; round++) {
    const writing = write(shop, random, 60);
    const replaying = round % 2 === 1 ? shop.command('table', 'replay', 'orders') : null;
    await new Promise((resolve) => setTimeout(resolve, random() * 1500));
    if (round % 3 === 2) {
      const { pid } = (await host.status())?.sink ?? {};
      if (pid) process.kill(pid, 'SIGKILL');
    } else await host.kill();
    await writing;
    await replaying;
    if (!host.alive) host.start();
    await shop.streaming();
  }
  await write(shop, random, 60);
  await shop.caughtUp();

  const { rows } = await sink.client.query('select max(amount) as max from orders');
  expect(rows[0].max).toBeLessThan(1000);
  await shop.mend();
  await replayed(shop);
  await shop.caughtUp();
  expect(await shop.differences(), `URUTAU_TEST_SEED=${SEED}`).toEqual([]);
  expect(await shop.letters()).toEqual([]);
  figure('quarantine', 'both sides equal after 6 kills and 3 replays that were cut short');
}, 300_000);

test('a thousand keys are quarantined, and one more pauses the table until a replay', async () => {
  const shop = await quarantinedShop({ flush: { interval: '1s' } });
  const { source, host } = shop;
  await shop.streaming();

  await source.client.query(`insert into orders select i, 5000, 'bad' from generate_series(501, 1501) i`);
  const { tables } = await host.until('the pause', ({ tables }) => tables[0]!.state === 'paused', 240_000);
  expect(tables[0]!.reason).toMatchObject({ code: 'row-refused', remedy: expect.stringContaining('table replay') });
  expect(tables[0]!.reason!.message).toContain('1,000 keys of public.orders are quarantined');
  expect(tables[1]!.state).toBe('streaming');

  await shop.mend();
  await replayed(shop);
  await shop.streaming();
  await shop.caughtUp();
  expect(await shop.differences()).toEqual([]);
  figure('quarantine, keys at once', '1,000 set aside, one more paused the table, all replayed');
}, 400_000);

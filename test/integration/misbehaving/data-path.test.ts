import { expect, test } from 'vitest';
import { control } from '../../../host/control/client.ts';
import { type Case, caseOf, nameOf, pattern } from './cases.ts';
import { figureOf } from './figure-of.ts';
import { MisbehavingHost } from './misbehaving-host.ts';

figureOf('data path');

/** `written`: rows of `orders` that are in the destination before the fault. */
const paused = [
  { program: 'repeats-an-offset.mjs', written: [1, 2] },
  { program: 'changes-the-schema-in-a-stream.mjs', written: [1, 2] },
  { program: 'sends-columns-that-are-not-in-its-schema.mjs', written: [1, 2] },
  { program: 'offers-two-endpoints.mjs', written: [] },
  { program: 'issues-a-long-ticket.mjs', written: [] },
  { program: 'sends-a-batch-of-40-mib.mjs', written: [1, 2] },
].map((row) => ({ ...row, known: caseOf(row.program) }));

test.each(paused.map((row) => [nameOf(row.known), row] as const))('%s', async (_, { program, written, known }) => {
  const misbehaving = new MisbehavingHost(program);

  misbehaving.host.start();
  await misbehaving.untilIds('customers', [1, 2]);
  if (written.length > 0) await misbehaving.untilStreaming();
  misbehaving.insert('orders', [3]);

  await expectPaused(misbehaving, known);
  misbehaving.insert('customers', [3]);
  await misbehaving.untilIds('customers', [1, 2, 3]);
  // What was there before the fault; a row that came right before it may be written, or come again.
  expect(misbehaving.ids('orders').slice(0, written.length)).toEqual(written);
  expect((await misbehaving.host.status())?.source).toMatchObject({ state: 'ready', restarts: 0 });
  expect(await misbehaving.host.stop()).toBe(3);
});

const back = caseOf('offsets-that-go-back.mjs');

test(nameOf(back), async () => {
  const misbehaving = new MisbehavingHost(back.program);
  misbehaving.host.start();
  await misbehaving.untilStreaming();
  misbehaving.insert('orders', [3]);
  await misbehaving.untilIds('orders', [1, 2, 3]);

  misbehaving.insert('orders', [4]);
  await expectPaused(misbehaving, back);
  misbehaving.insert('customers', [3]);
  await misbehaving.untilIds('customers', [1, 2, 3]);

  // It goes back but once; what it sent before is not lost by the pause.
  await control(misbehaving.host.stateDir).resume('orders');
  await misbehaving.untilIds('orders', [1, 2, 3, 4]);
  expect(await misbehaving.host.stop()).toBe(0);
});

const early = caseOf('acknowledges-before-it-is-durable.mjs');

test(nameOf(early), async () => {
  expect(await rowsMissingAfterAKill(early.program)).toEqual([1, 2, 3, 4]);
});

test('the same kill loses nothing with a driver that answers a flush when its rows are durable', async () => {
  expect(await rowsMissingAfterAKill('plain-sink/main.mjs')).toEqual([]);
});

/** Keys of rows that the source has, whose commit the host has seen, and that the destination lacks in the end. */
async function rowsMissingAfterAKill(sink: string): Promise<number[]> {
  const misbehaving = new MisbehavingHost(sink, { role: 'sink' });
  const committed = (snapshotRows: number, inserts: number) =>
    misbehaving.host.until(`the commit of ${snapshotRows} and ${inserts} rows`, ({ tables }) => {
      const { totals } = tables.find(({ source }) => source === 'orders')!;
      return totals.snapshotRows === snapshotRows && totals.inserts === inserts;
    });
  misbehaving.host.start();
  await misbehaving.untilStreaming();

  misbehaving.insert('orders', [3, 4]);
  const { sink: killed } = await committed(2, 2);
  process.kill(killed.pid!, 'SIGKILL');
  await misbehaving.untilRestarted(1);
  misbehaving.insert('orders', [5]);
  await committed(2, 3);

  expect(await misbehaving.host.stop(), misbehaving.host.output).toBe(0);
  const destination = new Set(misbehaving.ids('orders'));
  return [1, 2, 3, 4, 5].filter((id) => !destination.has(id));
}

async function expectPaused(misbehaving: MisbehavingHost, { prints, remedy }: Case): Promise<void> {
  const { host } = misbehaving;
  const { tables } = await host.until('orders pausing', ({ tables }) => tables[0]!.state === 'paused');
  const message = expect.stringMatching(pattern(prints));
  expect(tables[0]!.reason).toEqual({ by: 'fault', code: 'protocol-violation', message, remedy });
  expect(await misbehaving.untilLogged(/^table paused$/)).toMatchObject({
    level: 'error',
    table: 'orders',
    reason: message,
    remedy,
  });
}

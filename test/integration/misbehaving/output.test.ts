import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { caseOf, nameOf, pattern } from './cases.ts';
import { figureOf } from './figure-of.ts';
import { MisbehavingHost } from './misbehaving-host.ts';

figureOf('output');

/** Rows flow, the driver is the first one, and the host ends in order. */
async function expectToGoOn(misbehaving: MisbehavingHost): Promise<void> {
  misbehaving.insert('orders', [3]);
  await misbehaving.untilIds('orders', [1, 2, 3]);
  expect(await misbehaving.host.status()).toMatchObject({ source: { state: 'ready', restarts: 0, lastFailure: null } });
  expect(await misbehaving.host.stop()).toBe(0);
}

async function streaming(program: string): Promise<MisbehavingHost> {
  const misbehaving = new MisbehavingHost(program);
  misbehaving.host.start();
  await misbehaving.untilStreaming();
  return misbehaving;
}

const twice = caseOf('ready-twice.mjs');

test(nameOf(twice), async () => {
  const misbehaving = await streaming(twice.program);

  const line = await misbehaving.untilLogged(pattern(twice.prints));
  await expectToGoOn(misbehaving);

  expect(line).toMatchObject({ level: 'info', stream: 'stdout' });
  expect(misbehaving.logged().filter(({ msg }) => msg === 'driver ready')).toHaveLength(2); // One is the sink's.
});

const longLine = caseOf('writes-a-16-mib-line.mjs');

test(nameOf(longLine), async () => {
  const misbehaving = await streaming(longLine.program);

  await misbehaving.untilLogged(/^the line is over$/);
  await expectToGoOn(misbehaving);

  const lines = misbehaving.logged().filter(({ msg }) => pattern(longLine.prints).test(msg));
  expect(lines.map(({ stream }) => stream).sort()).toEqual(['stderr', 'stdout']);
  expect(lines.map(({ msg }) => msg.indexOf('…'))).toEqual([16_384, 16_384]);
  expect(misbehaving.logged().filter(({ msg }) => msg === 'the line is over')).toHaveLength(2);
});

const flood = caseOf('floods-stderr-for-ever.mjs');

test(nameOf(flood), async () => {
  const misbehaving = await streaming(flood.program);

  const { stream, lines, bytes } = await misbehaving.untilLogged(pattern(flood.prints));
  const residentKiB = Number(
    /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${misbehaving.host.pid}/status`, 'latin1'))?.[1],
  );
  const beganMs = Date.now();
  await expectToGoOn(misbehaving);

  expect(stream).toBe('stderr');
  expect([Number(lines) > 1_000, Number(bytes) > 1 << 20]).toEqual([true, true]);
  expect(residentKiB).toBeLessThan(300 * 1_024);
  expect(Date.now() - beganMs).toBeLessThan(20_000);
});

const invalid = caseOf('writes-invalid-utf-8.mjs');

test(nameOf(invalid), async () => {
  const misbehaving = await streaming(invalid.program);

  await misbehaving.untilLogged(/^the bytes are over$/);
  await expectToGoOn(misbehaving);

  const raw = misbehaving.logged().filter(({ msg }) => pattern(invalid.prints).test(msg));
  expect(raw.map(({ stream }) => stream).sort()).toEqual(['stderr', 'stdout']);
  // A line that such bytes keep from being JSON is text, and not lost.
  const cut = misbehaving.logged().filter(({ msg }) => msg.startsWith('{"level":"warn","msg":"said �'));
  expect(cut).toHaveLength(2);
});

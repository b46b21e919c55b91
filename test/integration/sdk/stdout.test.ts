import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { ACTION } from '@urutau/contract';
import { expect, onTestFinished, test } from 'vitest';
import { putBatch, putEvent, putStart } from './change-messages.ts';
import { startDriver } from './driver-process.ts';
import { collect, type FlightClient } from './flight-client.ts';

const STDOUT = fileURLToPath(new URL('../../../drivers/stdout/dist/sink.js', import.meta.url));

test('changes and a truncate come out as lines, in their order', async () => {
  const output = outputFile();
  const { client } = await startDriver({ role: 'sink', program: STDOUT, hostStdout: output.fd });

  await client.write([
    putStart('orders'),
    putBatch(
      [
        { op: 'c', id: 1, name: 'tea' },
        { op: 'u', id: 1, name: null },
      ],
      { seq: 1, rows: 2, phase: 'snapshot' },
    ),
    putEvent({ seq: 2, rows: 0, event: { kind: 'truncate' }, offset: 'AQ==', phase: 'stream' }),
    putBatch([{ op: 'd', id: 9_007_199_254_740_991 }], { seq: 3, rows: 1, phase: 'stream' }),
  ]);
  await client.action(ACTION.flush);

  expect(readFileSync(output.path, 'utf8')).toBe(
    [
      '{"table":"orders","op":"c","key":{"id":1},"after":{"id":1,"name":"tea"},"position":"AA==","ts":null,"phase":"snapshot"}',
      '{"table":"orders","op":"u","key":{"id":1},"after":{"id":1,"name":null},"position":"AQ==","ts":null,"phase":"snapshot"}',
      '{"table":"orders","op":"truncate","position":"AQ==","ts":null,"phase":"stream"}',
      '{"table":"orders","op":"d","key":{"id":9007199254740991},"before":{"id":9007199254740991},"position":"AA==","ts":null,"phase":"stream"}',
      '',
    ].join('\n'),
  );
});

test('batches of a host without envelopes come out as well', async () => {
  const output = outputFile();
  const { client } = await startDriver({ role: 'sink', program: STDOUT, hostStdout: output.fd });

  await client.write([putStart('orders'), putBatch([{ op: 'c', id: 1, name: 'tea' }])]);
  await client.action(ACTION.flush);

  expect(
    readFileSync(output.path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    {
      table: 'orders',
      op: 'c',
      key: { id: 1 },
      after: { id: 1, name: 'tea' },
      position: 'AA==',
      ts: null,
      phase: null,
    },
  ]);
});

test('with discard the rows are counted and nothing is decoded, nor is a standard output needed', async () => {
  const { client, child, exited } = await startDriver({ role: 'sink', program: STDOUT, config: { discard: true } });
  const log = collect(child.stdout! as AsyncIterable<Buffer>);
  const undecodable = { ...putBatch([{ op: 'c', id: 1 }], { seq: 1, rows: 1_000 }), dataBody: Buffer.of(1, 2, 3) };

  await client.write([putStart('orders'), undecodable]);
  await client.action(ACTION.flush);
  await client.action(ACTION.shutdown);

  expect(await exited).toBe('code 0');
  expect(Buffer.concat(await log).toString()).toContain('"rows":1000');
});

test('a reader that stops reading holds the host back, and shutdown still ends the driver', async () => {
  const driver = await startDriver({ role: 'sink', program: STDOUT, hostStdout: 'pipe' });
  const call = driver.client.rpc.doPut(driver.client.bearer());
  call.on('error', () => {});
  call.write(putStart('orders'));
  const batch = (seq: number) =>
    putBatch(
      Array.from({ length: 1000 }, (_, id) => ({ op: 'c' as const, id, name: 'x'.repeat(1000) })),
      { seq, rows: 1000 },
    );
  // Nothing is read from the pipe, so after the windows of the transport are full a write of the host waits.
  let seq = 0;
  let taken = true;
  while (taken && seq < 200) taken = await isTaken(call, batch(++seq), driver.client);

  expect(seq).toBeLessThan(60);

  driver.child.kill('SIGTERM');
  await once(driver.child, 'exit');

  expect(driver.child.exitCode).toBe(0);
}, 30_000);

test('when the reader goes away the driver says so and exits 2, so that it is not started again', async () => {
  const driver = await startDriver({ role: 'sink', program: STDOUT, hostStdout: 'pipe' });
  (driver.child.stdio[3] as Readable).destroy();

  const writing = driver.client.write([putStart('orders'), putBatch([{ op: 'c', id: 1, name: 'tea' }])]);

  await expect(writing).rejects.toThrow();
  expect(await driver.exited).toBe('code 2');
  expect(driver.stderr()).toContain('the reader of standard output is gone');
});

/** False when the message was not taken while fifty heartbeats went by. */
async function isTaken(
  call: { write(message: object, taken: () => void): void },
  message: object,
  client: FlightClient,
): Promise<boolean> {
  let taken = false;
  call.write(message, () => {
    taken = true;
  });
  for (let i = 0; i < 50 && !taken; i++) await client.action(ACTION.heartbeat);
  return taken;
}

function outputFile(): { path: string; fd: number } {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  const path = join(folder, 'lines');
  const fd = openSync(path, 'w');
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });
  return { path, fd };
}

import { ACTION, type DescribeAnswer } from '@urutau/contract';
import { afterEach, expect, test } from 'vitest';
import { FlightClient } from '../../../../host/flight/client.ts';
import { DriverMetrics, type MetricsClient } from '../../../../host/observe/driver-metrics.ts';
import { NO_MASK } from '../../../../host/supervisor/mask.ts';
import type { SinkDriver } from '../../../../sdk/typescript/define.ts';
import { sinkActions } from '../../../../sdk/typescript/flight/actions.ts';
import { createFlightServer } from '../../../../sdk/typescript/flight/server.ts';
import { WriteStreams } from '../../../../sdk/typescript/flight/write-streams.ts';
import { RecordingLog } from '../supervisor/recording-log.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

test('a living driver that announces metrics/1 is asked for them', async () => {
  const { metrics } = observed([await sink({ metrics: () => 'reads 3\n' })]);

  expect(await metrics.texts()).toEqual([{ role: 'sink', text: 'reads 3\n' }]);
});

test('a driver that does not announce metrics/1 is not asked, and that is nothing to complain about', async () => {
  const { metrics, log } = observed([await sink({})]);

  expect(await metrics.texts()).toEqual([]);
  expect(log.lines).toEqual([]);
});

test('a driver of the base, without urutau.describe, is not asked', async () => {
  const { metrics, log } = observed([client('source', { listActions: async () => [ACTION.status] })]);

  expect(await metrics.texts()).toEqual([]);
  expect(log.lines).toEqual([]);
});

test('a wedged driver holds no scrape: it is waited for once, then left alone, and the other is still asked', async () => {
  let asked = 0;
  const wedged = client('source', {
    listActions: () => {
      asked++;
      return new Promise<never>(() => {});
    },
  });
  const { metrics, log } = observed([wedged, await sink({ metrics: () => 'reads 3\n' })], 200);

  for (let scrape = 1; scrape <= 3; scrape++) {
    expect(await metrics.texts()).toEqual([{ role: 'sink', text: 'reads 3\n' }]);
  }

  expect(asked).toBe(1);
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { role: 'source', problem: 'Timed out after 200ms' } }]);
});

test('a driver whose metrics fail is left out with its reason', async () => {
  const { metrics, log } = observed([
    await sink({
      metrics: () => {
        throw new Error('no counters today');
      },
    }),
  ]);

  expect(await metrics.texts()).toEqual([]);
  expect(log.lines).toMatchObject([{ fields: { problem: expect.stringContaining('no counters today') } }]);
});

test('metrics over a mebibyte are left out', async () => {
  const { metrics, log } = observed([await sink({ metrics: () => '#'.repeat(1_048_577) })]);

  expect(await metrics.texts()).toEqual([]);
  expect(log.lines).toMatchObject([{ fields: { problem: 'expected at most 1048576 bytes of metrics; came 1048577' } }]);
});

test('what a driver announces is asked once per process, and a successor is asked anew', async () => {
  const describes: string[] = [];
  const named = (name: string) =>
    client('sink', {
      action: async () => {
        describes.push(name);
        return { extensions: ['metrics/1'] } as DescribeAnswer as never;
      },
      actionBytes: async () => Buffer.from(name),
    });
  const clients = [named('first')];
  const { metrics } = observed(clients);

  await metrics.texts();
  await metrics.texts();
  clients.push(named('second')); // The first is on its way out.
  expect(await metrics.texts()).toEqual([{ role: 'sink', text: 'second' }]);
  expect(describes).toEqual(['first', 'second']);
});

function observed(
  clients: readonly MetricsClient[],
  timeoutMs?: number,
): { metrics: DriverMetrics; log: RecordingLog } {
  const log = new RecordingLog();
  const metrics = new DriverMetrics({ clients: () => clients, log, timeoutMs });
  endings.push(() => metrics.close());
  return { metrics, log };
}

function client(role: 'source' | 'sink', parts: Partial<MetricsClient>): MetricsClient {
  const unexpected = () => Promise.reject(new Error('was not to be asked'));
  return {
    role,
    mask: NO_MASK,
    listActions: async () => [ACTION.describe, ACTION.metrics],
    action: unexpected,
    actionBytes: unexpected,
    ...parts,
  };
}

/** A real client of a real driver in this process. */
async function sink(parts: Partial<SinkDriver>): Promise<FlightClient> {
  const driver: SinkDriver = {
    openWriter: () => Promise.reject(new Error('takes no rows')),
    flush: async () => {},
    close: async () => {},
    ...parts,
  };
  const streams = new WriteStreams();
  const life = { heartbeat: () => {}, shutdown: () => {}, uptimeSec: () => 0 };
  const actions = sinkActions(driver, { name: 'small', version: '1.0.0' }, life, streams);
  const server = createFlightServer({ role: 'sink', driver, streams }, actions, 'secret');
  const port = await server.listen('127.0.0.1:0');
  const connected = await FlightClient.connect('sink', `127.0.0.1:${port}`, 'secret');
  endings.push(() => server.close());
  endings.push(() => connected.close());
  return connected;
}

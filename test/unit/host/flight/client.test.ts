import { ACTION, type SourceDriver } from '@urutau/sdk';
import { expect, onTestFinished, test } from 'vitest';
import { FlightClient } from '../../../../host/flight/client.ts';
import { sourceActions } from '../../../../sdk/typescript/flight/actions.ts';
import { createFlightServer } from '../../../../sdk/typescript/flight/server.ts';
import { SHAPE } from '../pipeline/shape.ts';

const never = new Promise<never>(() => {});

/** A source that lives, and never answers anything but the heartbeat. */
async function silentSource(more: Partial<SourceDriver> = {}) {
  let asked = () => {};
  const wasAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const silent = () => {
    asked();
    return never;
  };
  const driver: SourceDriver = { listTables: silent, read: silent, assign: silent, close: async () => {}, ...more };
  const life = { heartbeat: () => {}, shutdown: () => {}, uptimeSec: () => 0 };
  const actions = sourceActions(driver, { name: 'silent', version: '1.0.0' }, life);
  const server = createFlightServer({ role: 'source', driver }, actions, 'token');
  const port = await server.listen('127.0.0.1:0');
  const client = await FlightClient.connect('source', `127.0.0.1:${port}`, 'token');
  onTestFinished(() => {
    client.close();
    void server.close();
  });
  return { client, wasAsked };
}

const enough = new Error('enough');

test('an action that is never answered ends with its signal, with the reason that the signal has', async () => {
  const { client, wasAsked } = await silentSource();
  const ended = new AbortController();

  const answer = client.action(ACTION.assign, { tables: [], check: false }, { signal: ended.signal });
  await wasAsked;
  ended.abort(enough);

  await expect(answer).rejects.toBe(enough);
  await client.actionBytes(ACTION.heartbeat);
});

test('a GetFlightInfo that is never answered ends with its signal', async () => {
  const { client, wasAsked } = await silentSource();
  const ended = new AbortController();

  const answer = client.getFlightInfo({ table: 'orders', mode: 'changes' }, { signal: ended.signal });
  await wasAsked;
  ended.abort(enough);

  await expect(answer).rejects.toBe(enough);
});

test('a read ends with its signal, and the driver is told', async () => {
  let told = () => {};
  const closed = new Promise<void>((resolve) => {
    told = resolve;
  });
  const { client } = await silentSource({
    read: async () => ({
      shape: SHAPE,
      metadata: {},
      open: async function* (signal) {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        told();
        yield* [];
      },
    }),
  });
  const info = await client.getFlightInfo({ table: 'orders', mode: 'changes' });
  const ended = new AbortController();
  const stream = client.read(info, 'orders', { signal: ended.signal });
  await stream.schema();

  const next = stream.next();
  ended.abort(enough);

  await expect(next).rejects.toMatchObject({ code: 'source-unavailable' });
  await closed;
});

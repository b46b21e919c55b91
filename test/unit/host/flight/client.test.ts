import { mkdtempSync, rmSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServerDuplexStream, type ServerWritableStream, status } from '@grpc/grpc-js';
import { ACTION, type SourceDriver } from '@urutau/sdk';
import { expect, onTestFinished, test } from 'vitest';
import { FlightClient } from '../../../../host/flight/client.ts';
import { sourceActions } from '../../../../sdk/typescript/flight/actions.ts';
import { createFlightServer } from '../../../../sdk/typescript/flight/server.ts';
import { flightService } from '../../../../sdk/typescript/flight/service.ts';
import { openTransport } from '../../../../sdk/typescript/flight/transport.ts';
import { SHAPE } from '../pipeline/shape.ts';

const never = new Promise<never>(() => {});

/** A source that lives, and never answers anything but the heartbeat. */
async function silentSource(more: Partial<SourceDriver> = {}, address?: string) {
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
  const port = await server.listen(address ?? '127.0.0.1:0');
  const client = await FlightClient.connect('source', address ?? `127.0.0.1:${port}`, 'token');
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

test.each([
  ['a handshake with a wrong token (AUTH-1)', { handshakes: true, calls: false }],
  ['a call without a bearer (AUTH-2)', { handshakes: false, calls: true }],
])('a driver that answers a stranger %s is not used', async (what, serves) => {
  const port = await carelessDriver(serves);

  await expect(FlightClient.connect('source', `127.0.0.1:${port}`, 'token')).rejects.toMatchObject({
    code: 'protocol-violation',
    message: `it answered ${what}, which it must refuse`,
  });
});

test('a heartbeat fails once the socket of the driver is gone, though what is connected goes on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'socket-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 's');
  const { client } = await silentSource({}, `unix:${path}`);
  const alive = new AbortController().signal;
  await client.heartbeat(alive);

  unlinkSync(path);

  await expect(client.heartbeat(alive)).rejects.toMatchObject({
    message: `its socket ${path} was removed, and nobody can connect to it any more`,
  });
  await client.actionBytes(ACTION.heartbeat);
});

/** Answers what `serves` says whoever asks, and else only who knows the token; ends the connection of who does not (AUTH-1). */
async function carelessDriver(serves: { handshakes: boolean; calls: boolean }): Promise<number> {
  const server = new Server();
  const { breakConnections } = openTransport(server);
  const refused = { code: status.UNAUTHENTICATED, details: 'who are you' };
  server.addService(
    { Handshake: flightService.Handshake, DoAction: flightService.DoAction },
    {
      Handshake: (call: ServerDuplexStream<Uint8Array, Uint8Array>) => {
        call.once('data', (token) => {
          if (!serves.handshakes && Buffer.from(token).toString() !== 'token') {
            call.emit('error', refused);
            setImmediate(breakConnections);
            return;
          }
          call.write(new Uint8Array(0));
          call.end();
        });
        call.on('error', () => {});
      },
      DoAction: (call: ServerWritableStream<unknown, Uint8Array>) => {
        call.on('error', () => {});
        if (!serves.calls && call.metadata.get('authorization')[0] !== 'Bearer token') {
          call.emit('error', refused);
          return;
        }
        // Later than a handshake that was under way at the same time would have ended the connection.
        setTimeout(() => {
          call.write(new Uint8Array(0));
          call.end();
        }, 50);
      },
    },
  );
  onTestFinished(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });
}

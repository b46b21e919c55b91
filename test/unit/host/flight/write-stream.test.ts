import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { changeSchema, encodeFlightData } from '@urutau/contract';
import { expect, onTestFinished, test } from 'vitest';
import { FlightClient } from '../../../../host/flight/client.ts';
import { flightService } from '../../../../sdk/typescript/flight/service.ts';
import { SHAPE } from '../pipeline/shape.ts';

/** A driver that answers the handshake and treats each DoPut as the test says. */
async function clientOf(doPut: (call: ServerDuplexStream<unknown, unknown>) => void): Promise<FlightClient> {
  const server = new Server();
  server.addService(
    { Handshake: flightService.Handshake, DoPut: flightService.DoPut },
    {
      Handshake: (call: ServerDuplexStream<unknown, Uint8Array>) => {
        call.on('data', (token: Uint8Array) => {
          if (Buffer.from(token).toString() === 'token') call.write(new Uint8Array(0));
          call.end();
        });
      },
      DoPut: doPut,
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const client = await FlightClient.connect('sink', `127.0.0.1:${port}`, 'token');
  onTestFinished(() => {
    client.close();
    server.forceShutdown();
  });
  return client;
}

const write = (client: FlightClient) => client.write({ mode: 'write', table: 'orders' }, changeSchema(SHAPE));

test('a driver that ends the stream in good order before the host does is a failure, not a success', async () => {
  const client = await clientOf((call) => {
    call.on('data', () => call.end());
  });

  const stream = write(client);
  await stream.over;

  expect(stream.failure).toMatchObject({ code: 'stream-lost' });
  await expect(stream.end()).rejects.toThrow('before the host did');
});

test('the end that the host asks for succeeds when the driver answers it in good order', async () => {
  const client = await clientOf((call) => {
    call.on('data', () => {});
    call.on('end', () => call.end());
  });

  const stream = write(client);
  await stream.write(encodeFlightData({ dataHeader: new Uint8Array(8), body: [] }));
  await stream.end();

  expect(stream.failure).toBe(null);
});

import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { decodeFlightData, decodeFlightDataPieces, encodeFlightData } from '@urutau/contract';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { DataConnection, MessageAssembler } from '../../../../host/flight/data-connection.ts';

const framed = (message: Uint8Array): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
};

/** Cuts bytes at the given places, which may be anywhere and in any order. */
const cutAt = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length]
    .map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
    .filter(({ length }) => length > 0);
};

test('messages come out whole, wherever the transport cut them', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 }),
      fc.array(fc.nat(400)),
      (messages, places) => {
        const assembler = new MessageAssembler();
        const out: Uint8Array[][] = [];

        for (const chunk of cutAt(Buffer.concat(messages.map(framed)), places)) assembler.push(chunk, out);

        expect(out.map((pieces) => Buffer.concat(pieces))).toEqual(messages.map((message) => Buffer.from(message)));
      },
    ),
  );
});

test('FlightData is read from pieces as it is from one buffer', () => {
  const bytes = fc.uint8Array({ maxLength: 60 });
  fc.assert(
    fc.property(bytes, bytes, bytes, fc.array(fc.nat(300)), (dataHeader, appMetadata, body, places) => {
      const message = encodeFlightData({ dataHeader, appMetadata, body: [body] }).toBuffer();

      const { body: pieces, ...inPieces } = decodeFlightDataPieces(cutAt(message, places));

      const { dataBody, ...whole } = decodeFlightData(message);
      expect(Buffer.concat(pieces)).toEqual(Buffer.from(dataBody));
      expect(Buffer.from(inPieces.dataHeader)).toEqual(Buffer.from(whole.dataHeader));
      expect(Buffer.from(inPieces.appMetadata)).toEqual(Buffer.from(whole.appMetadata));
    }),
  );
});

test('a field that is not in use is passed over, whatever its wire type', () => {
  const unknown = [
    [0x78, 0xff, 0x01], // 15, varint
    [0x79, 1, 2, 3, 4, 5, 6, 7, 8], // 15, 64 bits
    [0x7d, 1, 2, 3, 4], // 15, 32 bits
    [0x7a, 2, 9, 9], // 15, bytes
  ].map((bytes) => Uint8Array.from(bytes));
  const message = encodeFlightData({ dataHeader: Uint8Array.of(1, 2, 3), body: [Uint8Array.of(4, 5)] }).toBuffer();

  for (const pieces of [
    [...unknown, message],
    [message, ...unknown],
  ]) {
    const { dataHeader, body } = decodeFlightDataPieces(pieces);
    expect([[...dataHeader], body.map((piece) => [...piece])]).toEqual([[1, 2, 3], [[4, 5]]]);
  }
});

test('a message that is cut short is refused', () => {
  const message = encodeFlightData({ dataHeader: Uint8Array.of(1, 2, 3), body: [Uint8Array.of(4, 5)] }).toBuffer();

  for (let end = 1; end < message.length; end++) {
    if (end === 5) continue; // The end of the first field is an end as good as any.
    expect(() => decodeFlightDataPieces([message.subarray(0, end)]), `cut at ${end}`).toThrow(/cut short/);
  }
});

test('a compressed message and one over the limit are refused', () => {
  const compressed = framed(Uint8Array.of(1));
  compressed[0] = 1;
  const large = framed(new Uint8Array(0));
  large.writeUInt32BE(33 * 1024 * 1024, 1);

  expect(() => new MessageAssembler().push(compressed, [])).toThrow(/compressed/);
  expect(() => new MessageAssembler().push(large, [])).toThrow(/over the limit/);
});

test.each([
  ['nothing was answered', (stream: ServerHttp2Stream) => stream.respond({ ':status': 200 }, { endStream: true })],
  [
    'something was answered',
    (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200 });
      stream.end(framed(Buffer.from('row')));
    },
  ],
])('a stream that the driver half-closes without a status fails while we still write: %s', async (_, answer) => {
  const server = createServer().on('stream', answer).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const connection = new DataConnection(`127.0.0.1:${(server.address() as AddressInfo).port}`, 'token');
  onTestFinished(() => connection.close());

  const call = connection.open('/put');
  while ((await call.read()) !== null);

  expect(await call.status).toMatchObject({ code: 14, details: 'the connection ended without a status' });
});

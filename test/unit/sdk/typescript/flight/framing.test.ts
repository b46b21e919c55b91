import { fileURLToPath } from 'node:url';
import * as protoLoader from '@grpc/proto-loader';
import {
  alignedBody,
  decodeEnvelope,
  decodeFlightData,
  type Envelope,
  encodeEnvelope,
  encodeFlightData,
  LIMIT,
} from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const PROTO = fileURLToPath(new URL('../../../../../contract/flight.proto', import.meta.url));
const stock = protoLoader.loadSync(PROTO, { defaults: true })[
  'arrow.flight.protocol.FlightData'
] as protoLoader.MessageTypeDefinition<object, object>;

const message = fc.record({
  dataHeader: fc.uint8Array({ maxLength: 300 }),
  appMetadata: fc.json().map((json) => new Uint8Array(Buffer.from(json))),
  body: fc.array(fc.uint8Array({ maxLength: 40_000 }), { maxLength: 4 }),
  cmd: fc.option(fc.uint8Array({ minLength: 1, maxLength: 300 }), { nil: undefined }),
});

test('a message that is decoded is the one that was encoded, but for spaces after the metadata', () => {
  fc.assert(
    fc.property(message, ({ cmd, ...rest }) => {
      const decoded = decodeFlightData(encode({ cmd, ...rest }));

      expect(Buffer.from(decoded.dataHeader)).toEqual(Buffer.from(rest.dataHeader));
      expect(Buffer.from(decoded.dataBody)).toEqual(Buffer.concat(rest.body));
      expect(Buffer.from(decoded.appMetadata).toString().trimEnd()).toBe(
        Buffer.from(rest.appMetadata).toString().trimEnd(),
      );
      expect(decoded.descriptor && Buffer.from(decoded.descriptor.cmd)).toEqual(cmd && Buffer.from(cmd));
    }),
  );
});

test('a stock protobuf reader reads the same from the same bytes, and ours reads what it writes', () => {
  fc.assert(
    fc.property(message, (sent) => {
      const bytes = encode(sent);
      const ours = decodeFlightData(bytes);
      const theirs = stock.deserialize(bytes) as { dataHeader: Buffer; appMetadata: Buffer; dataBody: Buffer };

      expect(theirs.dataHeader).toEqual(Buffer.from(ours.dataHeader));
      expect(theirs.appMetadata).toEqual(Buffer.from(ours.appMetadata));
      expect(theirs.dataBody).toEqual(Buffer.from(ours.dataBody));
      expect(decodeFlightData(stock.serialize(theirs))).toEqual(
        decodeFlightData(stock.serialize(stock.deserialize(bytes))),
      );
    }),
  );
});

test('the body begins at a multiple of eight for every length of header and metadata', () => {
  const body = [Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)];
  for (let header = 0; header < 20; header++) {
    for (const metadata of [...Array(300).keys(), 16_380, 16_381, 16_382, 16_383, 16_384, 16_385, 16_390]) {
      const bytes = encode({ dataHeader: new Uint8Array(header), appMetadata: Buffer.alloc(metadata, '1'), body });

      expect((bytes.length - 8) % 8, `header ${header}, metadata ${metadata}`).toBe(0);
    }
  }
});

test('a body that the transport misplaced is copied to where typed arrays may lie, another is not', () => {
  const bytes = new Uint8Array(64);

  for (let at = 0; at < 16; at++) {
    const body = alignedBody(bytes.subarray(at));
    expect(body.byteOffset % 8).toBe(0);
    expect(body.buffer === bytes.buffer).toBe(at % 8 === 0);
  }
});

test('a message that is cut anywhere is refused or lacks what was cut, and never reads beyond its end', () => {
  const bytes = encode({
    dataHeader: Uint8Array.of(1, 2),
    appMetadata: Buffer.from('{}'),
    body: [Uint8Array.of(3, 4)],
  });

  for (let end = 0; end < bytes.length; end++) {
    const cut = bytes.subarray(0, end);
    try {
      const { dataHeader, appMetadata, dataBody } = decodeFlightData(cut);
      expect(dataHeader.length + appMetadata.length + dataBody.length).toBeLessThan(bytes.length);
    } catch (error) {
      expect(error).toMatchObject({ message: expect.stringContaining('cut short') });
    }
  }
});

test('an envelope that is decoded is the one that was encoded, padded or not', () => {
  const envelope: fc.Arbitrary<Envelope> = fc.record(
    {
      seq: fc.maxSafeNat(),
      rows: fc.maxSafeNat(),
      offset: fc.base64String(),
      phase: fc.constantFrom('snapshot', 'stream', 'incremental'),
      ops: fc.record({ c: fc.nat(), u: fc.nat(), d: fc.nat() }),
      next: fc.option(fc.string()),
      event: fc.constantFrom({ kind: 'truncate' }, { kind: 'schema_change', ddl: 'ALTER TABLE "größe"' }),
      cut: fc.boolean(),
    },
    { requiredKeys: ['seq', 'rows'] },
  );
  fc.assert(
    fc.property(envelope, fc.nat(16), (sent, spaces) => {
      const padded = Buffer.concat([encodeEnvelope(sent), Buffer.alloc(spaces, ' ')]);

      expect(decodeEnvelope(padded)).toEqual(JSON.parse(JSON.stringify(sent)));
    }),
  );
});

test('spaces alone are no envelope, and one beyond the limit is refused', () => {
  expect(decodeEnvelope(Buffer.from(''))).toBeNull();
  expect(decodeEnvelope(Buffer.from('     '))).toBeNull();
  expect(() => encodeEnvelope({ seq: 1, rows: 0, next: 'x'.repeat(LIMIT.envelopeBytesMax) })).toThrow('over the limit');
});

function encode({
  cmd,
  ...message
}: {
  dataHeader: Uint8Array;
  appMetadata: Uint8Array;
  body: Uint8Array[];
  cmd?: Uint8Array;
}): Buffer {
  return encodeFlightData({ ...message, ...(cmd ? { descriptor: { cmd } } : {}) }).toBuffer();
}

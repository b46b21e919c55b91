// Writes the golden vectors of contract/vectors. They are made with stock libraries (protobuf from flight.proto, Arrow
// from apache-arrow) and with none of this project's own codecs, because those are checked against them.
// `--check` writes nothing and fails when a file is not what would be written.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import protoLoader from '@grpc/proto-loader';
import {
  Binary,
  Bool,
  DateDay,
  Decimal,
  Field,
  FixedSizeBinary,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimeMicrosecond,
  TimestampMicrosecond,
  TimestampNanosecond,
  tableToIPC,
  Uint64,
  Utf8,
} from 'apache-arrow';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const proto = protoLoader.loadSync(join(root, 'contract/flight.proto'), { keepCase: true, longs: String });
const stale = [];

emit('messages.json', messages());
emit('envelopes.json', envelopes());
emit('offsets.json', offsets());
emit('batches.json', batches());
emit('changes.json', changes());
if (stale.length > 0) {
  console.error(`not what scripts/generate-vectors.mjs writes: ${stale.join(', ')}; run it without --check`);
  process.exit(1);
}

function emit(name, content) {
  const file = join(root, 'contract/vectors', name);
  const text = `${JSON.stringify(content, null, 1)}\n`;
  let present = '';
  try {
    present = readFileSync(file, 'utf8');
  } catch {
    // The file is new.
  }
  if (present === text) return;
  if (process.argv.includes('--check')) {
    stale.push(relative(root, file));
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Flight messages: their fields (byte fields in base64) and their bytes on the wire. */
function messages() {
  const cmd = (json) => base64(Buffer.from(JSON.stringify(json)));
  const descriptor = (json) => ({ type: 'CMD', cmd: cmd(json) });
  const read = descriptor({ table: 'public.orders', mode: 'changes', fromOffset: 'AAAAAAAAAQAAAAAAAAAAAg==' });
  const info = {
    schema: base64(Buffer.from('schema')),
    flight_descriptor: read,
    endpoint: [{ ticket: { ticket: base64(Buffer.from([0, 1, 254, 255])) } }],
    total_records: '-1',
    total_bytes: '-1',
    ordered: true,
    app_metadata: base64(Buffer.from('{"stream":"s1"}')),
  };
  return [
    message('the token of a handshake', 'HandshakeRequest', { payload: base64(Buffer.from('c2VjcmV0')) }),
    message('the answer of a handshake is empty', 'HandshakeResponse', {}),
    message('an action with a body', 'Action', { type: 'urutau.progress', body: cmd({ tables: ['public.orders'] }) }),
    message('an action without a body', 'Action', { type: 'urutau.heartbeat' }),
    message('a result with a body', 'Result', { body: cmd({ offset: 'AAAAAAAAAQAAAAAAAAAAAg==' }) }),
    message('an empty result', 'Result', {}),
    message('an action type', 'ActionType', { type: 'urutau.flush', description: 'Täglich' }),
    message('a descriptor of a read', 'FlightDescriptor', read),
    message('a flight info of unknown length', 'FlightInfo', info),
    message('a flight info that counts its rows', 'FlightInfo', { ...info, total_records: '9007199254740993' }),
    message('a ticket', 'Ticket', { ticket: base64(Buffer.from([0, 1, 254, 255])) }),
    message('a request to cancel', 'CancelFlightInfoRequest', { info }),
    message('a cancel that was done', 'CancelFlightInfoResult', { status: 'CANCEL_STATUS_CANCELLED' }),
    message('the first message of a write stream', 'FlightData', {
      flight_descriptor: descriptor({ mode: 'write', table: 'orders', stream: 7 }),
      data_header: base64(Buffer.from('header')),
    }),
    message('a batch whose body lies at an odd place', 'FlightData', {
      data_header: base64(Buffer.from('header')),
      app_metadata: base64(Buffer.from('{"seq":1,"rows":2}')),
      data_body: base64(Buffer.from('12345678')),
    }),
    message('a batch whose metadata is padded so that its body is aligned', 'FlightData', {
      data_header: base64(Buffer.from('header')),
      app_metadata: base64(Buffer.from('{"seq":1,"rows":2}'.padEnd(19))),
      data_body: base64(Buffer.from('12345678')),
    }),
    message('metadata without a batch', 'FlightData', {
      app_metadata: base64(Buffer.from('{"seq":3,"rows":0,"cut":true}')),
    }),
  ];
}

function message(name, type, fields) {
  return { name, type, fields, bytes: base64(proto[`arrow.flight.protocol.${type}`].serialize(withBytes(fields))) };
}

/** Byte fields are base64 in the vectors and buffers for the library; proto-loader tells neither apart by itself. */
function withBytes(fields) {
  const bytes = new Set(['payload', 'body', 'cmd', 'schema', 'app_metadata', 'data_header', 'data_body']);
  if (Array.isArray(fields)) return fields.map(withBytes);
  if (fields === null || typeof fields !== 'object') return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => {
      const isBytes = bytes.has(key) || (key === 'ticket' && typeof value === 'string');
      return [key, isBytes ? Buffer.from(value, 'base64') : withBytes(value)];
    }),
  );
}

/** Envelopes as they may lie in app_metadata, and what they say. */
function envelopes() {
  const envelope = (name, text) => ({ name, text, means: text.trim() === '' ? null : JSON.parse(text) });
  return {
    valid: [
      envelope('the least', '{"seq":1,"rows":0}'),
      envelope('padded with spaces', '{"seq":2,"rows":3}      '),
      envelope('a field from later', '{"seq":2,"rows":3,"colour":"red"}'),
      envelope(
        'a batch of a stream',
        '{"seq":7,"rows":512,"offset":"AAAAAAAAAQAAAAAAAAAAAg==","decoded":"AAAAAAAAAQAAAAAAAAAAAA==","commitTs":"2026-11-30T10:00:00.123456Z","phase":"stream","ops":{"c":400,"u":100,"d":12}}',
      ),
      envelope('an event', '{"seq":8,"rows":0,"event":{"kind":"truncate"}}'),
      envelope('the end of a chunk', '{"seq":1,"rows":10,"phase":"snapshot","next":null}'),
      envelope('a cut without rows', '{"seq":9,"rows":0,"cut":true}'),
      envelope('spaces alone are no envelope', '        '),
    ],
    invalid: [
      { name: 'no number', text: '{"rows":1}' },
      { name: 'no rows', text: '{"seq":1}' },
      { name: 'cut short', text: '{"seq":1,"rows":' },
      { name: 'not an object', text: '7' },
    ],
    unchanged: [
      { rows: 3, unchangedRows: [0, 2], bitmap: base64(Uint8Array.of(0b101)) },
      { rows: 10, unchangedRows: [7, 8], bitmap: base64(Uint8Array.of(0b10000000, 0b1)) },
    ],
  };
}

/** For `offsetOrder: "bytes"`: from first to last in the log. And the offsets of the Postgres driver. */
function offsets() {
  const ascending = ['', '00', '0000', '01', '7f', '7fff', '80', 'ff', 'ff00'];
  const postgres = [
    [0n, 0n],
    [0x16b374d848n, 0n],
    [0x16b374d848n, 1n],
    [0x16b374d848n, 1_000_000n],
    [0x16b374d849n, 0n],
    [2n ** 63n, 2n],
    [2n ** 64n - 1n, 2n ** 64n - 1n],
  ];
  return {
    ascending: ascending.map((hex) => base64(Buffer.from(hex, 'hex'))),
    postgres: postgres.map(([commitLsn, index]) => {
      const bytes = Buffer.alloc(16);
      bytes.writeBigUInt64BE(commitLsn, 0);
      bytes.writeBigUInt64BE(index, 8);
      return { commitLsn: String(commitLsn), index: String(index), offset: base64(bytes) };
    }),
  };
}

/** One batch of one nullable column for each kind: values as text, and the Arrow messages. */
function batches() {
  return kinds().map(({ kind, type, metadata, values, data }) => {
    const field = new Field('value', type, true, new Map([['urutau.kind', kind], ...Object.entries(metadata ?? {})]));
    const column = makeData({ type, length: values.length, ...validity(values), ...data(values) });
    return { kind, arrowType: String(type), values, ...ipc(new Schema([field]), [column], values.length) };
  });
}

/** A batch of change records: every operation, a key change, an unknown time. */
function changes() {
  const row = [
    new Field('id', new Int64(), false, new Map([['urutau.kind', 'int64']])),
    new Field('name', new Utf8(), true, new Map([['urutau.kind', 'string']])),
  ];
  const records = [
    {
      op: 'c',
      before: null,
      after: { id: '1', name: 'one' },
      offset: 'AAAAAAAAAQAAAAAAAAAAAQ==',
      ts_source: '1764496800123456000',
    },
    {
      op: 'u',
      before: { id: '1', name: null },
      after: { id: '2', name: null },
      offset: 'AAAAAAAAAQAAAAAAAAAAAg==',
      ts_source: null,
    },
    {
      op: 'd',
      before: { id: '2', name: null },
      after: null,
      offset: 'AAAAAAAAAgAAAAAAAAAAAQ==',
      ts_source: '1764496800123457000',
    },
  ];
  const struct = new Struct(row);
  const image = (side) => {
    const present = records.map((record) => record[side]);
    const ids = present.map((value) => value?.id ?? null);
    const names = present.map((value) => value?.name ?? null);
    const children = [
      makeData({
        type: row[0].type,
        length: ids.length,
        ...validity(ids),
        data: BigInt64Array.from(ids, (id) => BigInt(id ?? 0)),
      }),
      makeData({ type: row[1].type, length: names.length, ...validity(names), ...utf8(names) }),
    ];
    return makeData({ type: struct, length: present.length, ...validity(present), children });
  };
  const column = (name) => records.map((record) => record[name]);
  const times = column('ts_source');
  const schema = new Schema(
    [
      new Field('op', new Utf8(), false),
      new Field('before', struct, true),
      new Field('after', struct, true),
      new Field('offset', new Binary(), false),
      new Field('ts_source', new TimestampNanosecond('UTC'), true),
    ],
    new Map([
      ['urutau.before', 'key'],
      ['urutau.primary_key', '["id"]'],
      ['urutau.schema_id', 'vector-1'],
    ]),
  );
  const columns = [
    makeData({ type: new Utf8(), length: 3, ...utf8(column('op')) }),
    image('before'),
    image('after'),
    makeData({ type: new Binary(), length: 3, ...binary(column('offset').map((text) => Buffer.from(text, 'base64'))) }),
    makeData({
      type: new TimestampNanosecond('UTC'),
      length: 3,
      ...validity(times),
      data: BigInt64Array.from(times, (time) => BigInt(time ?? 0)),
    }),
  ];
  return { records, ...ipc(schema, columns, 3) };
}

/** The two IPC messages of a one-batch stream: `schema` encapsulated, `header` without prefix, `body` the buffers. */
function ipc(schema, columns, length) {
  const batch = new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length, nullCount: 0, children: columns }),
  );
  const stream = Buffer.from(tableToIPC(new Table(schema, [batch]), 'stream'));
  const schemaEnd = 8 + stream.readInt32LE(4);
  const headerEnd = schemaEnd + 8 + stream.readInt32LE(schemaEnd + 4);
  return {
    schema: base64(stream.subarray(0, schemaEnd)),
    header: base64(stream.subarray(schemaEnd + 8, headerEnd)),
    body: base64(stream.subarray(headerEnd, stream.length - 8)),
  };
}

function validity(values) {
  const nullBitmap = bits(values.map((value) => value !== null));
  return { nullCount: values.filter((value) => value === null).length, nullBitmap };
}

function bits(flags) {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  for (const [row, flag] of flags.entries()) if (flag) bytes[row >> 3] |= 1 << (row & 7);
  return bytes;
}

function utf8(values) {
  return binary(values.map((value) => Buffer.from(value ?? '')));
}

function binary(values) {
  const valueOffsets = new Int32Array(values.length + 1);
  for (const [row, bytes] of values.entries()) valueOffsets[row + 1] = valueOffsets[row] + bytes.length;
  return { valueOffsets, data: Uint8Array.from(Buffer.concat(values)) };
}

function fixed(values, width) {
  return {
    data: Uint8Array.from(
      Buffer.concat(values.map((hex) => Buffer.from((hex ?? '').replaceAll('-', '').padEnd(2 * width, '0'), 'hex'))),
    ),
  };
}

function decimal(values, scale, words) {
  const data = new Uint32Array(values.length * words);
  for (const [row, value] of values.entries()) {
    const [whole, fraction = ''] = (value ?? '0').split('.');
    const unscaled = BigInt.asUintN(32 * words, BigInt(whole + fraction.padEnd(scale, '0')));
    for (let word = 0; word < words; word++)
      data[row * words + word] = Number((unscaled >> BigInt(32 * word)) & 0xffffffffn);
  }
  return { data };
}

/** Microseconds since 1970 of `2026-11-30T10:00:00.123456`: whole seconds and fraction apart, so nothing is rounded. */
function micros(text) {
  if (text === null) return 0n;
  const [seconds, fraction] = text.replace('Z', '').split('.');
  return BigInt(Date.parse(`${seconds}Z`)) * 1000n + BigInt(fraction.padEnd(6, '0'));
}

function base64(bytes) {
  return Buffer.from(bytes).toString('base64');
}

function kinds() {
  return [
    {
      kind: 'bool',
      type: new Bool(),
      values: ['true', 'false', null],
      data: (v) => ({ data: bits(v.map((x) => x === 'true')) }),
    },
    {
      kind: 'int32',
      type: new Int32(),
      values: ['-2147483648', '2147483647', '0', null],
      data: (v) => ({ data: Int32Array.from(v, Number) }),
    },
    {
      kind: 'int64',
      type: new Int64(),
      values: ['-9223372036854775808', '9223372036854775807', '9007199254740993', null],
      data: (v) => ({ data: BigInt64Array.from(v, (x) => BigInt(x ?? 0)) }),
    },
    {
      kind: 'uint64',
      type: new Uint64(),
      values: ['18446744073709551615', '15506708318740857342', '0', null],
      data: (v) => ({ data: BigUint64Array.from(v, (x) => BigInt(x ?? 0)) }),
    },
    {
      kind: 'float32',
      type: new Float32(),
      values: ['1.5', '-0', 'NaN', 'Infinity', null],
      data: (v) => ({ data: Float32Array.from(v, Number) }),
    },
    {
      kind: 'float64',
      type: new Float64(),
      values: ['0.1', '5e-324', '-Infinity', null],
      data: (v) => ({ data: Float64Array.from(v, Number) }),
    },
    {
      kind: 'decimal(12,2)',
      type: new Decimal(2, 12, 128),
      values: ['1234567890.12', '-0.01', '0.00', null],
      data: (v) => decimal(v, 2, 4),
    },
    {
      kind: 'decimal(38,10)',
      type: new Decimal(10, 38, 128),
      values: ['9999999999999999999999999999.9999999999', '-9999999999999999999999999999.9999999999', null],
      data: (v) => decimal(v, 10, 4),
    },
    {
      kind: 'decimal(50,5)',
      type: new Decimal(5, 50, 256),
      values: ['999999999999999999999999999999999999999999999.99999', '-123456789012345678901234567890.00001', null],
      data: (v) => decimal(v, 5, 8),
    },
    { kind: 'string', type: new Utf8(), values: ['', 'naïve 🌱 \u0000 end', null, 'x'.repeat(300)], data: utf8 },
    {
      kind: 'binary',
      type: new Binary(),
      values: ['', '00ff80', null],
      data: (v) => binary(v.map((x) => Buffer.from(x ?? '', 'hex'))),
    },
    {
      kind: 'fixed(4)',
      type: new FixedSizeBinary(4),
      values: ['deadbeef', '00000000', null],
      data: (v) => fixed(v, 4),
    },
    {
      kind: 'date',
      type: new DateDay(),
      values: ['1970-01-01', '0001-01-01', '9999-12-31', null],
      data: (v) => ({ data: Int32Array.from(v, (x) => (x === null ? 0 : Date.parse(`${x}T00:00:00Z`) / 86_400_000)) }),
    },
    {
      kind: 'time',
      type: new TimeMicrosecond(),
      values: ['00:00:00.000000', '23:59:59.999999', null],
      data: (v) => ({ data: BigInt64Array.from(v, (x) => (x === null ? 0n : micros(`1970-01-01T${x}`))) }),
    },
    {
      kind: 'timestamp',
      type: new TimestampMicrosecond(),
      values: ['2026-11-30T10:00:00.123456', '1969-12-31T23:59:59.999999', '0001-01-01T00:00:00.000001', null],
      data: (v) => ({ data: BigInt64Array.from(v, micros) }),
    },
    {
      kind: 'timestamptz',
      type: new TimestampMicrosecond('UTC'),
      values: ['2026-11-30T10:00:00.123456Z', '9999-12-31T23:59:59.999999Z', null],
      data: (v) => ({ data: BigInt64Array.from(v, micros) }),
    },
    {
      kind: 'uuid',
      type: new FixedSizeBinary(16),
      metadata: { 'ARROW:extension:name': 'arrow.uuid', 'ARROW:extension:metadata': '' },
      values: ['00112233-4455-6677-8899-aabbccddeeff', null],
      data: (v) => fixed(v, 16),
    },
    {
      kind: 'json',
      type: new Utf8(),
      metadata: { 'ARROW:extension:name': 'arrow.json', 'ARROW:extension:metadata': '' },
      values: ['{"n":12345678901234567890}', 'null', null],
      data: utf8,
    },
    {
      kind: 'list',
      type: new List(new Field('item', new Int32(), true)),
      values: [['1', null, '-3'], [], null],
      data: (v) => {
        const items = v.flatMap((list) => list ?? []);
        const valueOffsets = new Int32Array(v.length + 1);
        for (const [row, list] of v.entries()) valueOffsets[row + 1] = valueOffsets[row] + (list?.length ?? 0);
        const child = makeData({
          type: new Int32(),
          length: items.length,
          ...validity(items),
          data: Int32Array.from(items, Number),
        });
        return { valueOffsets, child };
      },
    },
  ];
}

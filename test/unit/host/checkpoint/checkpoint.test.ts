import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { acceptCheckpoint } from '../../../../host/checkpoint/accept.ts';
import { type Checkpoint, decodeCheckpoint, encodeCheckpoint } from '../../../../host/checkpoint/checkpoint.ts';
import { memoryStore } from '../../../../host/checkpoint/memory-store.ts';
import { sqliteStore } from '../../../../host/checkpoint/sqlite-store.ts';
import { QuarantinedKeys } from '../../../../host/pipeline/quarantine/quarantined-keys.ts';

const checkpoint: Checkpoint = {
  v: 1,
  writer: 'shop',
  run: 'r1',
  source: 'postgres:1/shop',
  stream: 3,
  commit: 7,
  offset: 'AQ==',
  schemaId: 's1',
  shape: 'writeMode upsert, key of the source',
  snapshot: { ranges: ['a', 'b'] },
};
const expected = { writer: 'shop', source: 'postgres:1/shop', shape: checkpoint.shape };

test('a checkpoint is read back as it was written', () => {
  expect(decodeCheckpoint(encodeCheckpoint(checkpoint), 'orders')).toEqual(checkpoint);
});

test('a checkpoint with a thousand quarantined keys beside a long plan and offset fits, and a longer one is refused', () => {
  const keys = QuarantinedKeys.none();
  for (let i = 0; i < 1_000; i++) {
    keys.add(
      { hash: Buffer.alloc(8, i).toString('base64').slice(0, 10) + i, text: '' },
      {
        since: (40_000n << 32n) + BigInt(i),
        run: '0123456789abcdef',
        table: 'orders',
        why: '',
      },
    );
  }
  const offset = 'A'.repeat(11_000);
  const full = { ...checkpoint, offset, snapshot: { ranges: ['r'.repeat(16_000)] }, ...keys.stored() };

  expect(QuarantinedKeys.of(decodeCheckpoint(encodeCheckpoint(full), 'orders')).stored()).toEqual(keys.stored());
  expect(() => encodeCheckpoint({ ...full, offset: 'A'.repeat(40_000) })).toThrow(/over the limit of 65536/);
});

test('a dead letter counts from the ordinal at which its key was set aside, and never under another epoch', () => {
  const keys = QuarantinedKeys.none();
  const joining = { since: 5n, run: 'r2', table: 'orders', why: '' };
  keys.add({ hash: 'a', text: '' }, joining);
  keys.add({ hash: 'a', text: '' }, { ...joining, since: 9n, run: 'r3' });

  const counts = [
    { ordinal: 4n, epoch: 'r2' },
    { ordinal: 5n, epoch: 'r2' },
    { ordinal: 6n, epoch: 'r1' },
  ].map((letter) => keys.counts('a', letter));

  expect(counts).toEqual([false, true, false]);
  expect(keys.counts('b', { ordinal: 6n, epoch: 'r2' })).toBe(false);
});

test.each(['{"v":2}', 'not json', '{}'])('a text that is no checkpoint of this version is refused: %s', (text) => {
  expect(() => decodeCheckpoint(text, 'orders')).toThrow(/the checkpoint stored for orders cannot be used/);
});

test('a checkpoint of the same pipeline, source and meaning is accepted', () => {
  expect(() => acceptCheckpoint('orders', checkpoint, expected)).not.toThrow();
});

test.each([
  ['writer', 'another', /belongs to the pipeline shop, this one is another/],
  ['source', 'postgres:2/shop', /taken from the source postgres:1\/shop, this pipeline now reads postgres:2\/shop/],
  ['shape', 'writeMode append, key of the source', /taken with writeMode upsert.* now says writeMode append/],
] as const)('a checkpoint of another %s is refused', (field, value, message) => {
  expect(() => acceptCheckpoint('orders', checkpoint, { ...expected, [field]: value })).toThrow(message);
});

const folder = () => {
  const path = mkdtempSync(join(tmpdir(), 'urutau-store-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
};

test('the sqlite store keeps checkpoints over a restart, apart by pipeline', () => {
  const path = join(folder(), 'deep', 'store.db');
  const store = sqliteStore(path);
  store.write('shop', 'orders', 'one');
  store.write('shop', 'orders', 'two');
  store.write('other', 'orders', 'theirs');
  store.close();

  const again = sqliteStore(path);
  onTestFinished(() => again.close());

  expect([again.read('shop', 'orders'), again.read('other', 'orders'), again.read('shop', 'nothing')]).toEqual([
    'two',
    'theirs',
    null,
  ]);
});

test.each(['sqlite', 'memory'])('the %s store removes the tables that it is told to, and names them', (kind) => {
  const store = kind === 'sqlite' ? sqliteStore(join(folder(), 'store.db')) : memoryStore();
  onTestFinished(() => store.close());
  for (const table of ['a', 'b', 'c']) store.write('shop', table, 'x');

  expect(store.remove('shop', ['b', 'z'])).toEqual(['b']);
  expect(store.remove('shop', 'all')).toEqual(['a', 'c']);
  expect(store.read('shop', 'a')).toBe(null);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sqliteStore } from '../../../../host/checkpoint/sqlite-store.ts';

test('a file that cannot be used is a destination that is away, and is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));

  expect(() => sqliteStore(folder)).toThrow(
    expect.objectContaining({ code: 'sink-unavailable', message: expect.stringContaining(folder) }),
  );
});

import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../../../host/make-folder.ts';

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'make-folder-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a folder is made with what is missing above it, and one that is there is left as it is', () => {
  const path = join(place(), 'a/b/c');

  makeFolder(path, 0o700);
  makeFolder(path, 0o755);

  expect(statSync(path).mode & 0o777).toBe(0o700);
});

test('a link to a folder is a folder', () => {
  const folder = place();
  symlinkSync(folder, join(folder, 'link'));

  makeFolder(join(folder, 'link'));
  makeFolder(join(folder, 'link/below'));

  expect(statSync(join(folder, 'below')).isDirectory()).toBe(true);
});

test('a file in the way is told', () => {
  const folder = place();
  writeFileSync(join(folder, 'file'), '');

  expect(() => makeFolder(join(folder, 'file'))).toThrow('EEXIST');
  expect(() => makeFolder(join(folder, 'file/below'))).toThrow('ENOTDIR');
});

test.runIf(process.platform === 'linux')('where the system makes no folders, that is told at once', () => {
  expect(() => makeFolder('/proc/x')).toThrow('ENOENT');
  expect(() => makeFolder('/proc/x/y')).toThrow('ENOENT');
});

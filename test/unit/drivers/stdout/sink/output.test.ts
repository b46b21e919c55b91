import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openOutput } from '../../../../../drivers/stdout/sink/output.ts';

test('texts reach a file in the order of the calls, and flush waits for all of them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  const fd = openSync(join(folder, 'lines'), 'w');
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });
  const output = openOutput(fd, (why) => expect.unreachable(why));
  const texts = Array.from({ length: 100 }, (_, n) => `${n} größe\n`);

  for (const text of texts) void output.write(text);
  await output.flush();

  expect(readFileSync(join(folder, 'lines'), 'utf8')).toBe(texts.join(''));
});

test('a descriptor that is not open is a wrong configuration', () => {
  expect(() => openOutput(999_999, () => {})).toThrow(
    expect.objectContaining({ code: 'config-invalid', message: 'file descriptor 999999 cannot be written to (EBADF)' }),
  );
});

test('a device that is full is told once, in words', async () => {
  const fd = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(fd));
  const broken = new Promise<string>((resolve) => {
    const output = openOutput(fd, resolve);
    void output.write('a line\n');
  });

  expect(await broken).toBe('standard output cannot be written: ENOSPC');
});

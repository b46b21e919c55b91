import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Log } from '../../../../host/observe/log.ts';
import { createLog, type LogOptions } from '../../../../host/observe/pino-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'urutau-log-'));
let files = 0;
afterAll(() => rmSync(folder, { recursive: true }));

test('a JSON line holds time, level, message, and the fields of the log and of the call', () => {
  const [line] = jsonLines((log) => log.child({ role: 'sink' }).child({ table: 'a.b' }).warn('slow', { waitedMs: 7 }));

  const { ts, ...rest } = line!;
  expect(rest).toEqual({ level: 'warn', msg: 'slow', role: 'sink', table: 'a.b', waitedMs: 7 });
  expect(ts).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test('a field cannot take the place of the time, the level or the message, and no key comes twice', () => {
  const text = written({ level: 'info', format: 'json' }, (log) =>
    log.child({ role: 'sink', level: 'fatal' }).info('real', { ts: 'never', msg: 'other', role: 'source' }),
  );

  expect(JSON.parse(text)).toMatchObject({ level: 'info', msg: 'real', role: 'source' });
  expect(text.match(/"ts":|"msg":|"level":|"role":/g)).toHaveLength(4);
});

test('a 64-bit integer is written as text, so that no reader rounds it', () => {
  expect(jsonLines((log) => log.info('at', { position: 2n ** 63n }))).toMatchObject([
    { position: '9223372036854775808' },
  ]);
});

test('what is below the level is not written', () => {
  const text = written({ level: 'warn', format: 'json' }, (log) => {
    log.debug('one');
    log.info('two');
    log.warn('three');
    log.error('four');
  });

  expect(text.match(/"msg":"\w+"/g)).toEqual(['"msg":"three"', '"msg":"four"']);
});

test('a line of text is short, and is read without colours where there is no terminal', () => {
  const text = written({ level: 'info', format: 'text' }, (log) =>
    log.info('driver ready', { role: 'source', pid: 12, problem: 'no route', tables: ['a', 'b'] }),
  );

  expect(text.replace(/^\S+/, 'TIME')).toBe(
    'TIME INFO: driver ready role=source pid=12 problem="no route" tables=["a","b"]\n',
  );
  expect(text).toMatch(/^\d{4}-\d\d-\d\dT\S+Z /);
});

test.each(['text', 'json'] as const)('a field that is nested thousands deep is written as %s too', (format) => {
  const deep = JSON.parse('['.repeat(4_000) + ']'.repeat(4_000));

  const text = written({ level: 'info', format }, (log) => log.info('said', { deep, marks: 'a\u202eb' }));

  expect(text).toContain('said');
  expect(text.trimEnd()).not.toContain('\n');
});

test('a person at a terminal sees colours and the time of day alone', () => {
  const text = written({ level: 'info', format: 'text', colors: true }, (log) => log.error('gone'));

  expect(text).toMatch(/^\d\d:\d\d:\d\d\.\d{3} /);
  expect(text).toContain('\u001b[31mERROR');
});

test('what a driver says can neither begin a line of its own nor command the terminal', () => {
  const text = written({ level: 'info', format: 'text' }, (log) =>
    log.info('first\n2026-01-01T00:00:00.000Z ERROR: forged', { tail: 'x\u001b[2J\r' }),
  );

  expect(text.split('\n').slice(1)).toEqual([
    expect.stringMatching(/^ {4}2026-01-01T00:00:00.000Z ERROR: forged tail=.*\\u001b\[2J/),
    '',
  ]);
  expect(text).not.toContain('\u001b');
});

test('a destination that can no longer be written does not end the process', () => {
  const fd = openSync(join(folder, 'closed'), 'w');
  const log = createLog({ level: 'info', format: 'json', destination: fd });
  closeSync(fd);

  expect(() => log.info('into the void')).not.toThrow();
});

function jsonLines(write: (log: Log) => void): Record<string, unknown>[] {
  return written({ level: 'info', format: 'json' }, write)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Read right after the call: nothing may be left in a buffer. */
function written(options: LogOptions, write: (log: Log) => void): string {
  const path = join(folder, `${files++}`);
  const fd = openSync(path, 'w');
  write(createLog({ ...options, destination: fd }));
  const text = readFileSync(path, 'utf8');
  closeSync(fd);
  return text;
}

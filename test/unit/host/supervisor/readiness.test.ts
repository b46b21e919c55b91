import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readReadiness, takeFirstLine } from '../../../../host/supervisor/readiness.ts';

test('a readiness line with or without pid, and with unknown fields, is accepted', () => {
  expect(readReadiness('{"ready":true,"protocolVersion":1}', 'unix')).toEqual({ kind: 'ready', port: null });
  expect(readReadiness('{"ready":true,"protocolVersion":1,"pid":42,"more":{}}', 'unix')).toEqual({
    kind: 'ready',
    port: null,
  });
  expect(readReadiness('{"ready":true,"protocolVersion":1,"port":4242}\r', 'tcp')).toEqual({
    kind: 'ready',
    port: 4242,
  });
});

test.each([
  ['starting …', 'unix', 'not the readiness line but "starting …"'],
  ['', 'unix', 'not the readiness line but ""'],
  ['[true]', 'unix', 'not the readiness line but "[true]"'],
  ['{"ready":false,"protocolVersion":1}', 'unix', 'must say "ready":true'],
  ['{"ready":true}', 'unix', 'it speaks protocol version none; this host speaks 1'],
  ['{"ready":true,"protocolVersion":"1"}', 'unix', 'it speaks protocol version "1"; this host speaks 1'],
  ['{"ready":true,"protocolVersion":2}', 'unix', 'it speaks protocol version 2; this host speaks 1'],
  ['{"ready":true,"protocolVersion":0}', 'unix', 'it speaks protocol version 0'],
  ['{"ready":true,"protocolVersion":1,"pid":"x"}', 'unix', 'has pid'],
  ['{"ready":true,"protocolVersion":1,"port":1}', 'unix', 'names port 1, but it was told to listen on a unix socket'],
  ['{"ready":true,"protocolVersion":1}', 'tcp', 'must name the port that it listens on (1–65535); it has none'],
  ['{"ready":true,"protocolVersion":1,"port":70000}', 'tcp', 'it has 70000'],
] as const)('the first line %s in %s mode is refused, and the reason says what came', (line, transport, reason) => {
  expect(readReadiness(line, transport)).toEqual({ kind: 'refused', problem: expect.stringContaining(reason) });
});

test('the first line ends at its newline and the rest goes on, however the bytes are cut', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: 20 }), { maxLength: 6 }), async (cuts) => {
      const whole = Buffer.from('{"ready":true}\nlog\n');
      const at = [0, ...cuts.filter((cut) => cut <= whole.length).sort((a, b) => a - b), whole.length];
      const stdout = new PassThrough();
      const rest: Buffer[] = [];
      const line = takeFirstLine(stdout, (chunk) => rest.push(chunk));
      for (const [index, to] of at.slice(1).entries()) stdout.write(whole.subarray(at[index], to));
      stdout.end();

      expect(await line).toEqual({ kind: 'line', text: '{"ready":true}' });
      await new Promise((resolve) => stdout.once('close', resolve));
      expect(Buffer.concat(rest).toString()).toBe('log\n');
    }),
  );
});

test('a first line of 8192 bytes with its newline is taken, one byte more is too long', async () => {
  const first = (bytes: number) => {
    const stdout = new PassThrough();
    const line = takeFirstLine(stdout, () => {});
    stdout.write(`${'x'.repeat(bytes - 1)}\n`);
    return line;
  };

  expect((await first(8_192)).kind).toBe('line');
  expect((await first(8_193)).kind).toBe('too-long');
});

test('a stream that ends without a newline has no first line', async () => {
  const stdout = new PassThrough();
  const line = takeFirstLine(stdout, () => {});
  stdout.end('{"ready":true}');

  expect(await line).toEqual({ kind: 'ended', text: '{"ready":true}' });
});

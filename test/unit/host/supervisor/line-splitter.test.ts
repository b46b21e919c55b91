import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineSplitter } from '../../../../host/supervisor/line-splitter.ts';

function split(chunks: readonly Buffer[], lineBytesMax: number): { text: string; cutBytes: number }[] {
  const lines: { text: string; cutBytes: number }[] = [];
  const splitter = new LineSplitter({
    lineBytesMax,
    onLine: ({ bytes, cutBytes }) => lines.push({ text: bytes.toString('latin1'), cutBytes }),
  });
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return lines;
}

test('a line longer than the limit is cut, and the cut bytes are counted', () => {
  expect(split([Buffer.from('abc'), Buffer.from('defgh\nij')], 4)).toEqual([
    { text: 'abcd', cutBytes: 4 },
    { text: 'ij', cutBytes: 0 },
  ]);
});

test('lines are the same however the stream is cut into chunks', () => {
  const bytes = fc.array(fc.constantFrom(0x61, 0x62, 0x0a, 0xff), { maxLength: 60 });
  fc.assert(
    fc.property(
      bytes,
      fc.array(fc.nat({ max: 60 }), { maxLength: 8 }),
      fc.integer({ min: 1, max: 8 }),
      (text, cuts, limit) => {
        const whole = Buffer.from(text);
        const at = [0, ...cuts.filter((cut) => cut <= whole.length).sort((a, b) => a - b), whole.length];
        const chunks = at.slice(1).map((to, index) => whole.subarray(at[index], to));

        const expected = whole.toString('latin1').split('\n');
        if (expected.at(-1) === '') expected.pop();
        expect(split(chunks, limit)).toEqual(
          expected.map((line) => ({ text: line.slice(0, limit), cutBytes: Math.max(0, line.length - limit) })),
        );
      },
    ),
  );
});

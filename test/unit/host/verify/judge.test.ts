import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Image, judgeByDestination, judgeBySource } from '../../../../host/verify/judge.ts';

const A = (version: number | null = 1): Image => ({ first: 1, second: 10, version });
const B = (version: number | null = 1): Image => ({ first: 2, second: 20, version });
const NONE: Image = null;

test.each([
  ['a source that stands still shows what the destination had to show', A(), B(), A(), 'different'],
  ['a row that the destination lacks all the while is missing', A(), NONE, A(), 'missing'],
  ['a source that changed says nothing', A(), B(), B(), 'look-again'],
  ['a row that is as it was, and was written in between, says nothing', A(1), B(), A(2), 'look-again'],
  ['a row that is gone by now says nothing', A(), B(), NONE, 'look-again'],
  ['the place of an absent row may have been taken in between', NONE, B(), NONE, 'look-again'],
  ['without versions the same image must do', A(null), B(null), A(null), 'different'],
  ['without versions an absent row counts as still', NONE, B(null), NONE, 'extra'],
  ['where only the destination has versions, they decide', A(null), B(), A(null), 'look-again'],
] as const)('%s (by the source)', (_, source, destination, again, verdict) => {
  expect(judgeBySource(source, destination, again)).toBe(verdict);
});

test.each([
  ['rows that are the same are equal', B(), A(), A(), 'equal'],
  ['rows that neither side has any more are equal', B(), NONE, NONE, 'equal'],
  ['a destination that stands still shows what it should not', B(), A(), B(), 'different'],
  ['a row that only the destination keeps is extra', B(), NONE, B(), 'extra'],
  ['a destination that was written in between says nothing', B(1), A(), B(2), 'look-again'],
  ['a row that the destination never shows may have come and gone', NONE, A(), NONE, 'look-again'],
  ['without versions it says nothing', B(null), A(), B(null), 'look-again'],
] as const)('%s (by the destination)', (_, destination, source, again, verdict) => {
  expect(judgeByDestination(destination, source, again)).toBe(verdict);
});

/**
 * One row at a source that is written at every moment, and a destination that shows the source of some moments ago. Reads alternate, and the
 * destination's come only when it has passed the source's read before.
 */
test('of a destination that only lags no row is ever judged to differ, however the source changes', () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
  const states = fc.array(fc.constantFrom(0, 1, 2), { minLength: 2, maxLength: 40 });
  const reads = fc.array(fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3)), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(states, reads, (written, steps) => {
      // State 0 is "absent"; each entry is a write, which makes a new version.
      const at = (moment: number): Image => {
        const place = Math.min(moment, written.length - 1);
        return written[place] === 0 ? null : { first: written[place]!, second: 0, version: place };
      };
      let now = 0;
      let shown = 0;
      let source: Image = null;
      let destination: Image | undefined;
      for (const [pause, lag, more] of steps) {
        now += pause;
        const position = now;
        const again = at(now);
        if (destination !== undefined)
          expect(['equal', 'look-again']).toContain(judgeBySource(source, destination, again));
        source = again;
        now += more;
        shown = Math.max(shown, position, now - lag);
        const destinationAgain = at(shown);
        if (destination !== undefined) {
          expect(['equal', 'look-again']).toContain(judgeByDestination(destination, source, destinationAgain));
        }
        destination = destinationAgain;
      }
    }),
    { seed, numRuns: 5_000 },
  );
});

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { FAULT_POINTS, type FaultPoint, faultPlayer, parseFault } from '@urutau/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../../..');

test('a fault is a point, the first time and kill by default', () => {
  expect(parseFault('sink.commit.answer')).toEqual({ point: 'sink.commit.answer', nth: 1, act: 'kill' });
  expect(parseFault('sink.commit.answer:3')).toEqual({ point: 'sink.commit.answer', nth: 3, act: 'kill' });
  expect(parseFault('sink.commit.answer:drop-reply')).toEqual({
    point: 'sink.commit.answer',
    nth: 1,
    act: 'drop-reply',
  });
  expect(parseFault('source.changes.sent:2:half-close')).toEqual({
    point: 'source.changes.sent',
    nth: 2,
    act: 'half-close',
  });
});

test.each([
  ['sink.comit', 'there is no fault point sink.comit; expected one of source.listening'],
  ['', 'there is no fault point ; expected one of'],
  [
    'host.drained:drop-reply',
    'drop-reply is nothing that can happen at host.drained; expected one of kill, stop, exit0',
  ],
  ['sink.commit.answer:half-close', 'half-close is nothing that can happen at sink.commit.answer'],
  ['sink.commit.answer:0', '0 is nothing that can happen'],
  ['sink.commit.answer:2:kill:stop', 'kill:stop is nothing that can happen'],
])('%j is refused with what would be right', (text, problem) => {
  expect(() => parseFault(text)).toThrow(problem);
});

test('a fault is played at its time and never again', () => {
  fc.assert(
    fc.property(fc.constantFrom(...points()), fc.integer({ min: 1, max: 50 }), (point, nth) => {
      const killed: string[] = [];
      const process = { kill: (signal: string) => void killed.push(signal), exit: () => {}, say: () => {} };
      const play = faultPlayer({ point, nth, act: 'kill' }, process);
      for (let time = 1; time <= 60; time++) {
        for (const other of points()) if (other !== point) expect(play(other)).toBeNull();
        play(point);
        expect(killed).toEqual(time < nth ? [] : ['SIGKILL']);
      }
    }),
    { numRuns: 20 },
  );
});

test('every fault point of the registry is come to in the code', () => {
  const sources = execFileSync('git', ['grep', '-h', "faultPoint\\|\\.sent'", '--', 'host', 'sdk', 'drivers'], {
    cwd: root,
    encoding: 'utf8',
  });
  const missing = points().filter((point) => {
    const { kind, action } = FAULT_POINTS[point];
    if (kind === 'reply' && action !== null) return false; // Found by the name of its action.
    const [role, ...step] = point.split('.');
    const ofBothRoles = role !== 'host' && sources.includes(`.${step.join('.')}\``);
    return !sources.includes(`'${point}'`) && !ofBothRoles;
  });
  expect(missing).toEqual([]);
});

function points(): FaultPoint[] {
  return Object.keys(FAULT_POINTS) as FaultPoint[];
}

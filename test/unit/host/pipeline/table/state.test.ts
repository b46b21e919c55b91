import { expect, test } from 'vitest';
import { next, type PauseReason, type TableEvent, type TableState } from '../../../../../host/pipeline/table/state.ts';

const byUser: PauseReason = { by: 'user', code: 'paused', message: 'paused by hand', remedy: 'resume' };
const byFault: PauseReason = { by: 'fault', code: 'row-refused', message: 'no', remedy: 'mend', key: '7' };

const STATES: Record<TableState['kind'], TableState> = {
  waiting: { kind: 'waiting' },
  planning: { kind: 'planning' },
  snapshotting: { kind: 'snapshotting' },
  streaming: { kind: 'streaming' },
  paused: { kind: 'paused', reason: byUser },
  done: { kind: 'done' },
};

const EVENTS: Record<TableEvent['kind'], TableEvent> = {
  started: { kind: 'started' },
  'snapshot-began': { kind: 'snapshot-began' },
  'caught-up-with-snapshot': { kind: 'caught-up-with-snapshot' },
  'session-ended': { kind: 'session-ended' },
  fault: { kind: 'fault', reason: byFault },
  pause: { kind: 'pause', reason: byUser },
  resume: { kind: 'resume' },
  resync: { kind: 'resync' },
  finished: { kind: 'finished' },
};

/** `same`, or the next state with the effects in their order. */
const TABLE: Record<TableState['kind'], Record<TableEvent['kind'], string>> = {
  waiting: {
    started: 'planning',
    'snapshot-began': 'same',
    'caught-up-with-snapshot': 'same',
    'session-ended': 'same',
    fault: 'paused stop-task',
    pause: 'paused',
    resume: 'same',
    resync: 'waiting begin-session-anew',
    finished: 'same',
  },
  planning: {
    started: 'same',
    'snapshot-began': 'snapshotting',
    'caught-up-with-snapshot': 'streaming',
    'session-ended': 'waiting',
    fault: 'paused stop-task',
    pause: 'paused stop-task',
    resume: 'same',
    resync: 'waiting begin-session-anew',
    finished: 'done',
  },
  snapshotting: {
    started: 'same',
    'snapshot-began': 'snapshotting',
    'caught-up-with-snapshot': 'streaming',
    'session-ended': 'waiting',
    fault: 'paused stop-task',
    pause: 'paused stop-task',
    resume: 'same',
    resync: 'waiting begin-session-anew',
    finished: 'done',
  },
  streaming: {
    started: 'same',
    'snapshot-began': 'snapshotting',
    'caught-up-with-snapshot': 'streaming',
    'session-ended': 'waiting',
    fault: 'paused stop-task',
    pause: 'paused stop-task',
    resume: 'same',
    resync: 'waiting begin-session-anew',
    finished: 'done',
  },
  paused: {
    started: 'same',
    'snapshot-began': 'same',
    'caught-up-with-snapshot': 'same',
    'session-ended': 'same',
    fault: 'same',
    pause: 'paused',
    resume: 'waiting begin-session-anew',
    resync: 'waiting begin-session-anew',
    finished: 'same',
  },
  done: {
    started: 'same',
    'snapshot-began': 'same',
    'caught-up-with-snapshot': 'same',
    'session-ended': 'same',
    fault: 'paused stop-task',
    pause: 'paused',
    resume: 'same',
    resync: 'waiting begin-session-anew',
    finished: 'same',
  },
};

for (const [kind, cells] of Object.entries(TABLE)) {
  for (const [event, expected] of Object.entries(cells)) {
    test(`a table that is ${kind} answers ${event} with ${expected}`, () => {
      const state = STATES[kind as TableState['kind']];

      const [after, ...effects] = next(state, EVENTS[event as TableEvent['kind']]);

      expect(after === state ? 'same' : [after.kind, ...effects].join(' ')).toBe(expected);
    });
  }
}

test('a table paused by hand keeps that reason when its last batch fails', () => {
  const [after] = next(STATES.paused, EVENTS.fault);

  expect(after).toEqual({ kind: 'paused', reason: byUser });
});

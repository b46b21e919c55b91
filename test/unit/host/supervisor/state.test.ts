import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DriverEvent, type DriverState, next, type Policy, STOPPED } from '../../../../host/supervisor/state.ts';

const POLICY: Policy = {
  restartable: true,
  backoff: { firstMs: 1_000, maxMs: 60_000 },
  // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
  breaker: { failures: 3, windowMs: 300_000, holdMs: 60_000, holdMsMax: 600_000, then: 'hold' },
  wellMs: 60_000,
};

const { history } = STOPPED;
const judge = { kind: 'judge', failedAtMs: 0, final: false } as const;

type StateName = Exclude<DriverState['kind'], 'stopping'> | 'stopping/stop' | 'stopping/start' | 'stopping/judge';

const STATES: Record<StateName, DriverState> = {
  stopped: STOPPED,
  starting: { kind: 'starting', history },
  ready: { kind: 'ready', history },
  'stopping/stop': { kind: 'stopping', history, afterwards: { kind: 'stop' } },
  'stopping/start': { kind: 'stopping', history, afterwards: { kind: 'start' } },
  'stopping/judge': { kind: 'stopping', history, afterwards: judge },
  'backing-off': { kind: 'backing-off', history, untilMs: 0 },
  held: { kind: 'held', history: { failuresInRow: 3, breaker: { kind: 'open', holdMs: 60_000 } }, untilMs: 0 },
  failed: { kind: 'failed', history, because: 'final' },
};

const EVENTS: Record<DriverEvent['kind'], DriverEvent> = {
  start: { kind: 'start', nowMs: 0 },
  ready: { kind: 'ready', nowMs: 0 },
  lost: { kind: 'lost', nowMs: 0, final: false },
  gone: { kind: 'gone', nowMs: 0, random: 0.5 },
  timer: { kind: 'timer', nowMs: 0 },
  restart: { kind: 'restart', nowMs: 0 },
  reset: { kind: 'reset', nowMs: 0 },
  stop: { kind: 'stop', nowMs: 0 },
};

const TABLE: Record<StateName, Record<DriverEvent['kind'], string>> = {
  stopped: {
    start: 'starting spawn',
    ready: 'same',
    lost: 'same',
    gone: 'same',
    timer: 'same',
    restart: 'same',
    reset: 'same',
    stop: 'same',
  },
  starting: {
    start: 'same',
    ready: 'ready publish arm(60000)',
    lost: 'stopping/judge kill',
    gone: 'same',
    timer: 'same',
    restart: 'stopping/start terminate',
    reset: 'starting',
    stop: 'stopping/stop terminate',
  },
  ready: {
    start: 'same',
    ready: 'same',
    lost: 'stopping/judge disarm withdraw kill',
    gone: 'same',
    timer: 'ready',
    restart: 'stopping/start disarm withdraw terminate',
    reset: 'ready',
    stop: 'stopping/stop disarm withdraw terminate',
  },
  'stopping/stop': {
    start: 'same',
    ready: 'same',
    lost: 'same',
    gone: 'stopped',
    timer: 'same',
    restart: 'same',
    reset: 'same',
    stop: 'same',
  },
  'stopping/start': {
    start: 'same',
    ready: 'same',
    lost: 'stopping/judge',
    gone: 'starting spawn',
    timer: 'same',
    restart: 'same',
    reset: 'stopping/start',
    stop: 'stopping/stop',
  },
  'stopping/judge': {
    start: 'same',
    ready: 'same',
    lost: 'same',
    gone: 'backing-off arm(1000)',
    timer: 'same',
    restart: 'same',
    reset: 'stopping/start',
    stop: 'stopping/stop',
  },
  'backing-off': {
    start: 'same',
    ready: 'same',
    lost: 'same',
    gone: 'same',
    timer: 'starting spawn',
    restart: 'same',
    reset: 'starting disarm spawn',
    stop: 'stopped disarm',
  },
  held: {
    start: 'same',
    ready: 'same',
    lost: 'same',
    gone: 'same',
    timer: 'starting spawn',
    restart: 'same',
    reset: 'starting disarm spawn',
    stop: 'stopped disarm',
  },
  failed: {
    start: 'same',
    ready: 'same',
    lost: 'same',
    gone: 'same',
    timer: 'same',
    restart: 'same',
    reset: 'same',
    stop: 'same',
  },
};

const CELLS = Object.entries(TABLE).flatMap(([state, row]) =>
  Object.entries(row).map(([event, expected]) => [state as StateName, event as DriverEvent['kind'], expected] as const),
);

test.each(CELLS)('in the state %s the event %s leads to: %s', (state, event, expected) => {
  const before = STATES[state];
  const [after, ...effects] = next(before, EVENTS[event], POLICY);

  const told = effects.map((effect) => (effect.kind === 'arm' ? `arm(${effect.ms})` : effect.kind));
  expect(after === before ? 'same' : [nameOf(after), ...told].join(' ')).toBe(expected);
});

test('three failures in a row wait one second, then two, then hold for a minute until one start goes through', () => {
  const told: string[] = [];
  let state: DriverState = next(STOPPED, EVENTS.start, POLICY)[0];
  for (let failure = 0; failure < 5; failure++) {
    state = next(state, EVENTS.lost, POLICY)[0];
    const [after, effect] = next(state, EVENTS.gone, POLICY);
    told.push(`${after.kind} ${effect?.kind === 'arm' ? effect.ms : ''}`);
    state = next(after, EVENTS.timer, POLICY)[0];
  }

  expect(told).toEqual(['backing-off 1000', 'backing-off 2000', 'held 60000', 'held 120000', 'held 240000']);
  expect(state.history.breaker).toEqual({ kind: 'half-open', holdMs: 240_000 });
});

test('after running well the backoff begins at its first step again, and a half-open breaker closes', () => {
  const tried: DriverState = {
    kind: 'ready',
    history: { failuresInRow: 9, breaker: { kind: 'half-open', holdMs: 60_000 } },
  };

  const [well] = next(tried, EVENTS.timer, POLICY);
  const [lost] = next(well, EVENTS.lost, POLICY);

  expect(next(lost, EVENTS.gone, POLICY)).toEqual([
    {
      kind: 'backing-off',
      history: { failuresInRow: 1, breaker: { kind: 'closed', failedAtMs: [0] } },
      untilMs: 1_000,
    },
    { kind: 'arm', ms: 1_000 },
  ]);
});

test('a reset holds nothing against the driver any more, wherever it is', () => {
  const worn = { failuresInRow: 9, breaker: { kind: 'half-open', holdMs: 600_000 } } as const;
  const after = Object.values(STATES)
    .map((state): DriverState => ({ ...state, history: worn }))
    .map((state) => next(state, EVENTS.reset, POLICY)[0])
    .filter(({ history }) => history !== worn);

  expect(after.map(nameOf)).toEqual(['starting', 'ready', 'stopping/start', 'stopping/start', 'starting', 'starting']);
  for (const state of after) expect(state.history).toEqual(history);
});

test('a start that was asked for counts as no failure', () => {
  const [stopping] = next(STATES.ready, EVENTS.restart, POLICY);

  expect(next(stopping, EVENTS.gone, POLICY)[0]).toEqual({ kind: 'starting', history });
});

test('a final failure, a driver that may not be started again, and a breaker that ends the host each fail for good', () => {
  const judged = (state: DriverState, policy: Policy) => next(state, EVENTS.gone, policy)[0];
  const twice = { failuresInRow: 2, breaker: { kind: 'closed', failedAtMs: [0, 0] } } as const;
  // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
  const exits = { ...POLICY, breaker: { ...POLICY.breaker, then: 'exit' as const } };

  expect([
    judged({ kind: 'stopping', history, afterwards: { ...judge, final: true } }, POLICY),
    judged(STATES['stopping/judge'], { ...POLICY, restartable: false }),
    judged({ kind: 'stopping', history: twice, afterwards: judge }, exits),
  ]).toMatchObject([
    { kind: 'failed', because: 'final' },
    { kind: 'failed', because: 'not-restartable' },
    { kind: 'failed', because: 'breaker' },
  ]);
});

test('whatever happens, a successor is spawned only when the group of the one before is gone', () => {
  const event = fc.constantFrom(...Object.values(EVENTS));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), (events) => {
      let state: DriverState = STOPPED;
      let living = false;
      for (const happened of events) {
        if (happened.kind === 'gone' && state.kind !== 'stopping') continue; // Nothing of it is left only after its end.
        if (happened.kind === 'gone') living = false;
        const [after, ...effects] = next(state, happened, POLICY);
        for (const { kind } of effects) {
          if (kind !== 'spawn') continue;
          expect(living).toBe(false);
          living = true;
        }
        state = after;
      }
    }),
  );
});

test('whatever happens, what was published is withdrawn before anything is published again', () => {
  const event = fc.constantFrom(...Object.values(EVENTS));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), (events) => {
      let state: DriverState = STOPPED;
      let published = false;
      for (const happened of events) {
        const [after, ...effects] = next(state, happened, POLICY);
        for (const { kind } of effects) {
          if (kind !== 'publish' && kind !== 'withdraw') continue;
          expect(published).toBe(kind === 'withdraw');
          published = kind === 'publish';
        }
        state = after;
        expect(published).toBe(state.kind === 'ready');
      }
    }),
  );
});

function nameOf(state: DriverState): string {
  return state.kind === 'stopping' ? `stopping/${state.afterwards.kind}` : state.kind;
}

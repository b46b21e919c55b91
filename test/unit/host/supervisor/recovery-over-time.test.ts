import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { diagnose } from '../../../../host/supervisor/diagnose.ts';
import { type DriverEvent, type DriverState, next, type Policy, STOPPED } from '../../../../host/supervisor/state.ts';
import { figure } from '../../../figures.ts';
import { FakeClock } from './fake-clock.ts';
import { type Life, SimulatedDriver } from './simulated-driver.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const WEEK = 7 * 24 * 60 * MINUTE;
const NEVER = Number.POSITIVE_INFINITY;

const POLICY: Policy = {
  restartable: true,
  backoff: { firstMs: SECOND, maxMs: MINUTE },
  // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
  breaker: { failures: 3, windowMs: 5 * MINUTE, holdMs: MINUTE, holdMsMax: 10 * MINUTE, then: 'hold' },
  wellMs: MINUTE,
};
const NO_BREAKER: Policy = { ...POLICY, breaker: { ...POLICY.breaker, failures: 1_000_000 } };

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
/** Dies within three seconds, before or after it is ready. */
const shortLife: fc.Arbitrary<Life> = fc.record({
  readyAfterMs: fc.integer({ min: 0, max: 2 * SECOND }),
  diesAfterMs: fc.integer({ min: 0, max: 3 * SECOND }),
  goneAfterMs: fc.integer({ min: 0, max: 20 * SECOND }),
});

test('a driver that starts and dies, or does not even start, opens the breaker at its third death', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(shortLife, { minLength: 3, maxLength: 3 }), random, async (lives, jitter) => {
      const { driver, clock } = started({ lives: (index) => lives[index % 3]!, random: () => jitter });

      for (let seconds = 0; driver.waits.length < 3; seconds++) {
        expect(seconds).toBeLessThan(120);
        await clock.advance(SECOND);
      }

      expect(driver.waits.map(({ kind }) => kind)).toEqual(['backing-off', 'backing-off', 'held']);
      expect(driver.waits[2]!.ms).toBe(MINUTE);
      expect(driver.breaches).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

test('a failure a week never opens the breaker, for years, and each waits the first step only', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 6 * MINUTE, max: WEEK }), random, async (apartMs, jitter) => {
      const { driver, clock } = started({
        lives: () => ({ readyAfterMs: SECOND, diesAfterMs: apartMs }),
        random: () => jitter,
      });

      await clock.advance(60 * (apartMs + 2 * SECOND));

      expect(driver.waits.length).toBeGreaterThan(50);
      for (const { kind, ms } of driver.waits) {
        expect(kind).toBe('backing-off');
        expect(ms).toBeGreaterThanOrEqual(0.75 * SECOND);
        expect(ms).toBeLessThanOrEqual(1.25 * SECOND);
      }
      expect(driver.state.history.breaker.kind).toBe('closed');
    }),
    { numRuns: 20 },
  );
});

test('while the breaker is open one start goes through after each hold, which doubles up to ten minutes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(shortLife, { minLength: 1, maxLength: 9 }), random, async (lives, jitter) => {
      const { driver, clock } = started({ lives: (index) => lives[index % lives.length]!, random: () => jitter });

      await clock.advance(90 * MINUTE);

      const holds = driver.waits.filter(({ kind }) => kind === 'held').map(({ ms }) => ms / MINUTE);
      expect(holds.slice(0, 8)).toEqual([1, 2, 4, 8, 10, 10, 10, 10]);
      expect(driver.waits.slice(2).every(({ kind }) => kind === 'held')).toBe(true);
      // From the third on, each start has its own hold before it.
      expect(driver.spawnedAtMs.length - 3).toBeLessThanOrEqual(holds.length);
      const apart = driver.spawnedAtMs.slice(3).map((atMs, index) => atMs - driver.spawnedAtMs[index + 2]!);
      for (const [index, ms] of apart.entries()) expect(ms).toBeGreaterThanOrEqual(holds[index]! * MINUTE);
      expect(driver.breaches).toEqual([]);
    }),
    { numRuns: 30 },
  );
});

test('a trial that runs well closes the breaker; one that dies a moment too early does not', async () => {
  const lastTrial = async (livesMs: number) => {
    const lives = (index: number): Life => ({ readyAfterMs: 0, diesAfterMs: index < 3 ? SECOND : livesMs });
    const { driver, clock } = started({ lives });
    for (let seconds = 0; driver.waits.length < 4; seconds++) {
      expect(seconds).toBeLessThan(600);
      await clock.advance(SECOND);
    }
    return driver.waits[3];
  };

  expect(await lastTrial(MINUTE - 1)).toEqual({ kind: 'held', ms: 2 * MINUTE });
  expect(await lastTrial(MINUTE + 1)).toEqual({ kind: 'backing-off', ms: SECOND });
});

test('each wait is within a quarter of the doubled one before jitter, and never above 75 s', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(random, { minLength: 1, maxLength: 20 }), async (jitters) => {
      let drawn = 0;
      const { driver, clock } = started(
        { lives: () => ({ readyAfterMs: NEVER, diesAfterMs: 10 }), random: () => jitters[drawn++ % jitters.length]! },
        NO_BREAKER,
      );

      await clock.advance(60 * MINUTE);

      expect(driver.waits.length).toBeGreaterThan(20);
      for (const [index, { ms }] of driver.waits.entries()) {
        const plainMs = Math.min(SECOND * 2 ** index, MINUTE);
        expect(ms).toBeGreaterThanOrEqual(Math.floor(plainMs * 0.75));
        expect(ms).toBeLessThanOrEqual(Math.ceil(plainMs * 1.25));
        expect(ms).toBeLessThanOrEqual(75 * SECOND);
      }
    }),
    { numRuns: 30 },
  );
});

test('after a minute of running well the wait is the first step again, and not a moment before', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 0, max: 10 * SECOND }),
      fc.boolean(),
      async (failures, readyAfterMs, runsWell) => {
        const lives = (index: number): Life =>
          index === failures
            ? { readyAfterMs, diesAfterMs: readyAfterMs + MINUTE + (runsWell ? 1 : -1) }
            : { readyAfterMs: NEVER, diesAfterMs: 10 };
        const { driver, clock } = started({ lives }, NO_BREAKER);

        await clock.advance(30 * MINUTE);

        const expected = runsWell ? SECOND : Math.min(SECOND * 2 ** failures, MINUTE);
        expect(driver.waits[failures]).toEqual({ kind: 'backing-off', ms: expected });
      },
    ),
    { numRuns: 50 },
  );
});

test('an end that was asked for never counts, however often it is asked', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom('restart', 'stop'), fc.integer({ min: 0, max: 5 * SECOND })), {
        minLength: 1,
        maxLength: 40,
      }),
      async (asked) => {
        const { driver, clock } = started({ lives: () => ({ readyAfterMs: SECOND, diesAfterMs: NEVER }) });
        for (const [what, pauseMs] of asked) {
          await clock.advance(pauseMs);
          driver.ask(what as 'restart' | 'stop');
          await clock.advance(SECOND);
          driver.ask('start');
        }

        expect(driver.waits).toEqual([]);
        expect(driver.state.history).toEqual(STOPPED.history);
        expect(driver.breaches).toEqual([]);
      },
    ),
    { numRuns: 50 },
  );
});

test('an end by any signal, and with any code but 2, is a failure that is tried again; 2 is final', () => {
  const told = { driver: 'd', stderr: '', ranBefore: true };
  const signal = fc.constantFrom<NodeJS.Signals>('SIGKILL', 'SIGSEGV', 'SIGTERM', 'SIGABRT', 'SIGBUS', 'SIGHUP');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 255 }), signal, fc.boolean(), (code, signal, wasReady) => {
      const exited = { kind: 'exited', wasReady } as const;

      expect(diagnose({ ...exited, exit: { code: null, signal } }, told).final).toBe(false);
      expect(diagnose({ ...exited, exit: { code, signal: null } }, told).final).toBe(code === 2);
    }),
  );
});

test('a final failure is the last: nothing but the end follows, whatever is asked', async () => {
  const { driver, clock } = started({ lives: () => ({ readyAfterMs: NEVER, diesAfterMs: 10, final: true }) });
  await clock.advance(SECOND);
  expect(driver.state).toMatchObject({ kind: 'failed', because: 'final' });

  for (const what of ['restart', 'reset', 'start', 'stop'] as const) driver.ask(what);
  await clock.advance(WEEK);

  expect(driver.spawnedAtMs).toHaveLength(1);
});

test('a reset starts a held driver at once with a clean record, and a driver that still dies opens it again', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 30 * MINUTE }), async (heldForMs) => {
      const { driver, clock } = started({ lives: () => ({ readyAfterMs: NEVER, diesAfterMs: 10 }) });
      await clock.advance(MINUTE / 2 + heldForMs);
      const before = driver.spawnedAtMs.length;
      const waitsBefore = driver.waits.length;
      expect(driver.state.kind).toBe('held');

      driver.ask('reset');

      expect(driver.spawnedAtMs).toHaveLength(before + 1);
      expect(driver.state.history).toEqual(STOPPED.history);
      await clock.advance(MINUTE / 2);
      expect(driver.waits.slice(waitsBefore)).toEqual([
        { kind: 'backing-off', ms: SECOND },
        { kind: 'backing-off', ms: 2 * SECOND },
        { kind: 'held', ms: MINUTE },
      ]);
      expect(driver.breaches).toEqual([]);
    }),
    { numRuns: 30 },
  );
});

test('whatever a driver does and a person asks, no process is beside another, and no timer or use outlives its state', async () => {
  const life: fc.Arbitrary<Life> = fc.record({
    readyAfterMs: fc.oneof(fc.integer({ min: 0, max: 40 * SECOND }), fc.constant(NEVER)),
    diesAfterMs: fc.oneof(fc.integer({ min: 0, max: 3 * MINUTE }), fc.constant(NEVER)),
    goneAfterMs: fc.integer({ min: 0, max: 45 * SECOND }),
  });
  const step = fc.tuple(
    fc.constantFrom('start', 'restart', 'reset', 'stop', 'wait'),
    fc.oneof(fc.integer({ min: 0, max: SECOND }), fc.integer({ min: 0, max: 5 * MINUTE })),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(life, { minLength: 1, maxLength: 10 }),
      fc.array(step, { maxLength: 60 }),
      random,
      async (lives, steps, jitter) => {
        const { driver, clock } = started({ lives: (index) => lives[index % lives.length]!, random: () => jitter });
        for (const [what, pauseMs] of steps) {
          if (what !== 'wait') driver.ask(what as 'start');
          await clock.advance(pauseMs);
        }
        driver.ask('stop');
        await clock.advance(MINUTE);

        expect(driver.breaches).toEqual([]);
        expect(driver.state.kind).toBe('stopped');
      },
    ),
    { numRuns: 100 },
  );
});

test('from any state any event is taken without a throw, spawns only where nothing lives, and counts only a failure', () => {
  const breaker = fc.oneof(
    fc.record({ kind: fc.constant('closed' as const), failedAtMs: fc.array(fc.nat(WEEK), { maxLength: 4 }) }),
    fc.record({
      kind: fc.constantFrom('open' as const, 'half-open' as const),
      holdMs: fc.integer({ min: 1, max: 10 * MINUTE }),
    }),
  );
  const history = fc.record({ failuresInRow: fc.oneof(fc.nat(5), fc.nat(1_000_000)), breaker });
  const afterwards = fc.oneof(
    fc.record({ kind: fc.constantFrom('stop' as const, 'start' as const) }),
    fc.record({ kind: fc.constant('judge' as const), failedAtMs: fc.nat(WEEK), final: fc.boolean() }),
  );
  const state: fc.Arbitrary<DriverState> = fc.oneof(
    fc.record({ kind: fc.constantFrom('stopped' as const, 'starting' as const, 'ready' as const), history }),
    fc.record({ kind: fc.constantFrom('backing-off' as const, 'held' as const), history, untilMs: fc.nat(WEEK) }),
    fc.record({ kind: fc.constant('stopping' as const), history, afterwards }),
    fc.record({
      kind: fc.constant('failed' as const),
      history,
      because: fc.constantFrom('final' as const, 'breaker' as const),
    }),
  );
  const event = fc.record({
    kind: fc.constantFrom<DriverEvent['kind']>('start', 'ready', 'lost', 'gone', 'timer', 'restart', 'reset', 'stop'),
    nowMs: fc.nat(WEEK),
    random,
    final: fc.boolean(),
  });
  const policy: fc.Arbitrary<Policy> = fc.record({
    restartable: fc.boolean(),
    backoff: fc.record({ firstMs: fc.nat(MINUTE), maxMs: fc.integer({ min: MINUTE, max: 10 * MINUTE }) }),
    breaker: fc.record({
      failures: fc.integer({ min: 1, max: 5 }),
      windowMs: fc.nat(10 * MINUTE),
      holdMs: fc.nat(5 * MINUTE),
      holdMsMax: fc.constant(10 * MINUTE),
      // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
      then: fc.constantFrom('hold' as const, 'exit' as const),
    }),
    wellMs: fc.constant(MINUTE),
  });
  fc.assert(
    fc.property(state, event, policy, (before, happened, policy) => {
      const [after, ...effects] = next(before, happened as DriverEvent, policy);

      const kinds = effects.map(({ kind }) => kind);
      const spawns = kinds.filter((kind) => kind === 'spawn').length;
      expect(spawns).toBe(after.kind === 'starting' && before.kind !== 'starting' ? 1 : 0);
      // A process that lives is gone before the next one comes.
      if (spawns > 0 && before.kind === 'stopping') expect(happened.kind).toBe('gone');
      expect(['starting', 'ready']).not.toContain(spawns > 0 ? before.kind : '');
      expect(kinds.includes('publish')).toBe(before.kind === 'starting' && after.kind === 'ready');
      expect(kinds.includes('withdraw')).toBe(before.kind === 'ready' && after.kind !== 'ready');
      for (const effect of effects) {
        if (effect.kind !== 'arm') continue;
        expect(effect.ms).toBeGreaterThanOrEqual(0);
        expect(effect.ms).toBeLessThanOrEqual(12.5 * MINUTE);
      }
      if (after.kind === 'held' && before.kind !== 'held') expect(after.history.breaker.kind).toBe('open');
      // Only a failure is counted, and it is counted once.
      const counted = after.history.failuresInRow - before.history.failuresInRow;
      if (counted > 0) expect([counted, before.kind, happened.kind]).toEqual([1, 'stopping', 'gone']);
      if (before.kind === 'failed') expect([after, effects]).toEqual([before, []]);
    }),
    { numRuns: 5_000 },
  );
});

let simulated = 0;
afterAll(() => figure('breaker and backoff', `${simulated} simulated drivers, no invariant broken`));

function started(
  options: ConstructorParameters<typeof SimulatedDriver>[2],
  policy: Policy = POLICY,
): { driver: SimulatedDriver; clock: FakeClock } {
  simulated++;
  const clock = new FakeClock();
  const driver = new SimulatedDriver(clock, policy, options);
  driver.ask('start');
  return { driver, clock };
}

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createConnection } from 'node:net';
import { dirname } from 'node:path';
import { UrutauError } from '@urutau/contract';
import { expect, test } from 'vitest';
import { NO_FAILURES } from '../../../../host/supervisor/failure-reason.ts';
import { ANSWERS, fixturePackage, isRunning, SETTINGS, supervise } from './supervise.ts';

const NEVER = new AbortController().signal;

test('a driver that is ready is handed out with its endpoint, token and pid, and stop leaves nothing of it', async () => {
  const shutdowns: number[] = [];
  const { supervisor, statuses, started } = supervise('well-behaved', {
    connect: async () => ({
      ...ANSWERS,
      shutdown: async () => {
        shutdowns.push(1);
        process.kill(supervisor.status.pid!, 'SIGTERM'); // The action and the signal take the same path in a driver.
      },
    }),
  });

  const driver = await started();
  const folder = dirname(driver.endpoint.slice('unix:'.length));
  expect(driver.endpoint).toMatch(/^unix:\//);
  expect(Buffer.from(driver.token, 'base64')).toHaveLength(32);
  expect(isRunning(driver.pid)).toBe(true);
  expect(existsSync(folder)).toBe(true);
  expect(existsSync(`${folder}/config.json`)).toBe(false);

  await Promise.all([supervisor.stop(), supervisor.stop()]);
  await supervisor.stop();

  expect(isRunning(driver.pid)).toBe(false);
  expect(existsSync(folder)).toBe(false);
  expect(shutdowns).toHaveLength(1);
  expect((await driver.died).kind).toBe('stop');
  expect(driver.diedSignal.aborted).toBe(true);
  expect(statuses.map(({ state }) => state)).toEqual(['starting', 'ready', 'stopping', 'stopped']);
});

test('a driver in TCP mode is handed out with the port that it names', async () => {
  const { started } = supervise('listens-on-tcp', { transport: 'tcp' });

  const driver = await started();

  const [host, port] = driver.endpoint.split(':');
  expect(host).toBe('127.0.0.1');
  const socket = createConnection(Number(port), host);
  await once(socket, 'connect');
  socket.destroy();
});

test.each([
  ['junk-before-ready', 'the first line on its stdout is not the readiness line but "Welcome to the driver!"'],
  ['speaks-version-9', 'it speaks protocol version 9; this host speaks 1'],
  ['names-a-port-on-a-socket', 'names port 4242, but it was told to listen on a unix socket'],
  ['endless-first-line', 'its first line on stdout is longer than 8192 bytes'],
  ['closes-its-stdout', 'it closed its stdout without a readiness line'],
  ['crashes-before-ready', 'exited with code 1 before it was ready, which nobody asked for'],
  ['crashes-before-ready', 'no such module: left-pad'],
])('%s is a failed start that says: %s', async (fixture, sentence) => {
  const { supervisor, status } = supervise(fixture, {
    settings: { ...SETTINGS, backoff: { firstMs: 60_000, maxMs: 60_000 } },
  });

  const failed = status(({ state }) => state === 'backing-off');
  supervisor.start();

  expect((await failed).lastFailure?.message).toContain(sentence);
});

test('a driver that is not ready in time is a failed start with its stderr as the cause, and is gone', async () => {
  const { supervisor, status } = supervise('never-ready', {
    settings: { ...SETTINGS, readyMs: 400, backoff: { firstMs: 60_000, maxMs: 60_000 } },
  });

  const starting = status(({ state }) => state === 'stopping');
  const failed = status(({ state }) => state === 'backing-off');
  supervisor.start();

  const { pid } = await starting;
  expect((await failed).lastFailure?.message).toBe(
    'source driver fixture was not ready within 0.4 s: a readiness line was expected on its stdout, and no line came; it said: waiting for a server that never answers',
  );
  expect(isRunning(pid!)).toBe(false);
});

test("exit code 2 is final, with the driver's own words", async () => {
  const { supervisor, started, statuses } = supervise('exits-2');

  const failure = await started().catch((error: unknown) => error);

  expect(failure).toBeInstanceOf(UrutauError);
  expect(failure).toMatchObject({
    code: 'config-invalid',
    message:
      'source driver fixture refuses its configuration or environment (exit code 2); it said: loading | config: "slotName" is missing',
    cause: { message: expect.stringContaining('loading\nconfig: "slotName" is missing') },
  });
  expect(statuses.map(({ state }) => state)).toEqual(['starting', 'stopping', 'failed']);
  await expect(supervisor.ready(NEVER)).rejects.toBe(failure);
});

test('exit code 2 is final also when the driver spoke on stdout', async () => {
  const { started, log } = supervise('exits-2-with-words-on-stdout');

  await expect(started()).rejects.toMatchObject({ code: 'config-invalid' });
  await log.line('usage: driver --config FILE');
});

test.each([
  ['exits-0-unasked', 'exited with code 0, which nobody asked for'],
  ['dies-by-signal', 'was ended by SIGKILL'],
])(
  '%s is started again, and held back at the third failure until one start goes through',
  async (fixture, sentence) => {
    const { supervisor, status, statuses } = supervise(fixture);

    const heldTwice = status(
      ({ state, breaker, restarts }) => state === 'held' && breaker === 'open' && restarts === 3,
    );
    supervisor.start();

    expect((await heldTwice).lastFailure?.message).toContain(sentence);
    const waits = statuses.filter(({ state }) => state === 'backing-off' || state === 'held');
    expect(waits.map(({ state }) => state)).toEqual(['backing-off', 'backing-off', 'held', 'held']);
    const tries = statuses.filter(({ state }) => state === 'starting');
    expect(tries.map(({ breaker }) => breaker)).toEqual(['closed', 'closed', 'closed', 'half-open']);
  },
);

test('the death of a driver is told to who uses it, and the next one is another process with other secrets', async () => {
  const { supervisor, started } = supervise('well-behaved');
  const first = await started();

  process.kill(first.pid, 'SIGKILL');
  const death = await first.died;
  const second = await supervisor.ready(NEVER);

  expect(death.kind).toBe('failure');
  expect(death.error.message).toContain('was ended by SIGKILL');
  expect(death.error.remedy).toContain('out of memory');
  expect(first.diedSignal.reason).toBe(death.error);
  expect([second.pid, second.token, second.endpoint]).not.toEqual([first.pid, first.token, first.endpoint]);
  expect(second.token).not.toBe(first.token);
  expect(supervisor.status).toMatchObject({ state: 'ready', restarts: 1, breaker: 'closed', pid: second.pid });
});

test('the status says what opened the breaker and until when, and a reset starts the mended driver at once', async () => {
  let mended = false;
  const settings = { ...SETTINGS, breaker: { ...SETTINGS.breaker, holdMs: 600_000 } };
  const { supervisor, status, log } = supervise('well-behaved', {
    settings,
    connect: async () => {
      if (!mended) throw new Error('the wire is cut');
      return ANSWERS;
    },
  });
  const heldAt = status(({ state }) => state === 'held');
  supervisor.start();

  const { breaker, nextStartAtMs, failures, failuresByReason } = await heldAt;
  expect(breaker).toBe('open');
  expect(nextStartAtMs! - Date.now()).toBeGreaterThan(500_000);
  expect(failures.map(({ reason, message }) => [reason, message.includes('the wire is cut')])).toEqual(
    Array(3).fill(['handshake', true]),
  );
  expect(failuresByReason).toEqual({ ...NO_FAILURES, handshake: 3 });
  expect(await log.line('driver failed too often; starts are held back')).toMatchObject({
    fields: { endBy: 'urutau-host driver reset source' },
  });

  mended = true;
  supervisor.reset();
  await supervisor.ready(NEVER);

  expect(supervisor.status).toMatchObject({ state: 'ready', restarts: 3, breaker: 'closed', failures: [] });
});

test('a driver that failed for good, or was stopped, is not reset, and the error says what to do', async () => {
  const { supervisor, started } = supervise('exits-2');
  await started().catch(() => {});
  const stopped = supervise('well-behaved').supervisor;

  for (const over of [supervisor, stopped]) {
    expect(() => over.reset()).toThrow(
      expect.objectContaining({ code: 'precondition-failed', remedy: expect.stringContaining('urutau-host run') }),
    );
  }
});

test('a breaker that ends the host makes the third failure final', async () => {
  // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
  const settings = { ...SETTINGS, breaker: { ...SETTINGS.breaker, then: 'exit' as const } };
  const { started } = supervise('crashes-before-ready', { settings });

  await expect(started()).rejects.toThrow(
    /^source driver fixture failed 3 times within 60 s; the last time: .*left-pad/,
  );
});

test('a sink whose writes are not idempotent is not started again by itself', async () => {
  const driver = fixturePackage(['node', 'well-behaved.mjs'], { capabilities: { idempotentWrite: false } });
  const { supervisor, started } = supervise(driver, { role: 'sink' });
  const first = await started();

  process.kill(first.pid, 'SIGKILL');
  await first.died;

  await expect(supervisor.ready(NEVER)).rejects.toThrow('not started again because its writes are not idempotent');
});

test('a restart that was asked for ends the driver in order and counts as no failure', async () => {
  const { supervisor, started } = supervise('well-behaved', {
    connect: async () => ({ ...ANSWERS, shutdown: () => Promise.reject(new Error('busy')) }),
  });
  const first = await started();

  supervisor.restart('the pipeline asked');
  const death = await first.died;
  const second = await supervisor.ready(NEVER);

  expect(death).toMatchObject({
    kind: 'restart',
    error: { message: 'source driver fixture was ended: the pipeline asked' },
  });
  expect(isRunning(first.pid)).toBe(false);
  expect(second.pid).not.toBe(first.pid);
  expect(supervisor.status).toMatchObject({ restarts: 1, lastFailure: null, breaker: 'closed' });
});

test('a failed handshake is a failed start', async () => {
  const { supervisor, status } = supervise('well-behaved', {
    connect: () => Promise.reject(new UrutauError('protocol-violation', 'the handshake answer is not empty')),
  });

  const failed = status(({ state }) => state === 'backing-off');
  supervisor.start();

  expect((await failed).lastFailure?.message).toContain(
    'said that it was ready, but the handshake failed: the handshake answer is not empty',
  );
});

test('a driver that hangs is killed at the last missed heartbeat and started again', async () => {
  let connections = 0;
  const { supervisor, started } = supervise('hangs-after-ready', {
    connect: async () => {
      const hangs = ++connections === 1;
      return { ...ANSWERS, heartbeat: () => (hangs ? new Promise(() => {}) : Promise.resolve()) };
    },
  });
  const first = await started();

  const { error } = await first.died;
  await supervisor.ready(NEVER);

  expect(error.message).toContain('missed 3 heartbeats in a row and is taken for dead (no answer within 20 ms)');
  expect(isRunning(first.pid)).toBe(false);
  expect(supervisor.status.restarts).toBe(1);
});

test('a driver that ignores SIGTERM is killed after the grace period', async () => {
  const { supervisor, started, log } = supervise('ignores-sigterm', { settings: { ...SETTINGS, stopMs: 50 } });
  const { pid } = await started();

  await supervisor.stop();

  expect(isRunning(pid)).toBe(false);
  expect(log.lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg)).toEqual([
    'driver did not end when asked and is sent SIGTERM',
    'driver did not end when asked and is sent SIGKILL',
  ]);
});

test('stop waits for grandchildren too, and ends those that ignore it', async () => {
  const { supervisor, started, log } = supervise('leaves-grandchildren', { settings: { ...SETTINGS, stopMs: 50 } });
  await started();
  const { fields } = await log.line('grandchild');
  const grandchild = fields['pid'] as number;
  expect(isRunning(grandchild)).toBe(true);

  await supervisor.stop();

  expect(isRunning(grandchild)).toBe(false);
});

test('a successor is not started before the grandchildren of a dead driver are gone', async () => {
  const { supervisor, started, log, statuses } = supervise('leaves-grandchildren');
  const first = await started();
  const grandchild = (await log.line('grandchild')).fields['pid'] as number;

  process.kill(first.pid, 'SIGKILL');
  await first.died;
  await supervisor.ready(NEVER);

  expect(isRunning(grandchild)).toBe(false);
  expect(statuses.map(({ state }) => state)).toEqual([
    'starting',
    'ready',
    'stopping',
    'backing-off',
    'starting',
    'ready',
  ]);
});

test('stop during a start, before it and while a start is held back each end at once', async () => {
  const starting = supervise('never-ready');
  starting.supervisor.start();
  await starting.supervisor.stop();
  expect(starting.supervisor.status).toMatchObject({ state: 'stopped', pid: null });

  const untouched = supervise('never-ready');
  await untouched.supervisor.stop();
  expect(untouched.supervisor.status.state).toBe('stopped');

  const held = supervise('crashes-before-ready', {
    settings: { ...SETTINGS, breaker: { ...SETTINGS.breaker, failures: 1, holdMs: 600_000 } },
  });
  const holds = held.status(({ state }) => state === 'held');
  held.supervisor.start();
  await holds;
  await held.supervisor.stop();
  expect(held.supervisor.status.state).toBe('stopped');
});

test('who waits for a driver is told when it is stopped, and may give up', async () => {
  const { supervisor } = supervise('never-ready');
  const patience = new AbortController();
  supervisor.start();
  const stopped = supervisor.ready(NEVER);
  const givenUp = supervisor.ready(patience.signal);

  patience.abort(new Error('enough'));
  await expect(givenUp).rejects.toThrow('enough');
  const [outcome] = await Promise.allSettled([stopped, supervisor.stop()]);

  expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } });
});

test('a stopped driver can be started again', async () => {
  const { supervisor, started } = supervise('well-behaved');
  const first = await started();
  await supervisor.stop();

  const second = await started();

  expect(second.pid).not.toBe(first.pid);
  expect(supervisor.status.restarts).toBe(0);
});

test('logs come through by their level, raw lines as info, and secrets in none of them', async () => {
  const configSchema = { properties: { password: { type: 'string', secret: true } } };
  const { supervisor, log, status } = supervise(
    fixturePackage(['node', 'logs-and-crashes.mjs'], {}, { configSchema }),
    {
      config: () => ({ password: 'correct horse' }),
    },
  );

  const failed = status(({ state }) => state === 'backing-off');
  supervisor.start();
  const { lastFailure } = await failed;

  const said = log.lines.filter(({ fields }) => 'stream' in fields);
  expect(said.map(({ level, msg, fields }) => [level, msg, fields['stream']])).toEqual(
    expect.arrayContaining([
      ['info', 'not JSON', 'stdout'],
      ['info', '{"rows":1}', 'stdout'],
      ['info', 'odd', 'stdout'],
      ['error', 'broken', 'stdout'],
      ['debug', 'connecting with ***', 'stdout'],
      ['info', 'cannot log in with ***', 'stderr'],
    ]),
  );
  expect(said.find(({ msg }) => msg === 'broken')?.fields).toMatchObject({
    ts: '2026-01-01T00:00:00Z',
    table: 'orders',
  });
  expect(lastFailure?.message).toContain('exited with code 7, which nobody asked for; it said: cannot log in with ***');
  expect(JSON.stringify(log.lines)).not.toContain('correct horse');
});

test('50 MB on stderr that are no UTF-8 are drained, counted and hurt nobody', async () => {
  const { started, log } = supervise('floods-stderr');
  await started();

  await log.line('flood is over');

  const passed = log.lines.filter(({ fields }) => fields['stream'] === 'stderr');
  expect(passed.length).toBeLessThan(60_000);
  expect(log.lines.reduce((sum, { msg }) => sum + msg.length, 0)).toBeLessThan(30_000_000);
}, 60_000);

test('a line of 16 MB is cut with a note, and the next one comes through', async () => {
  const { started, log } = supervise('long-line');
  await started();

  await log.line('line is over');

  const [long] = log.lines.filter(({ msg }) => msg.startsWith('yyy'));
  expect(long?.msg).toBe(`${'y'.repeat(16_384)}… [${16 * 1_048_576 - 16_384} bytes cut]`);
});

test('CPU and memory of all processes so far are added up', async () => {
  const { supervisor, started } = supervise('well-behaved');
  const first = await started();
  const before = supervisor.resources();
  process.kill(first.pid, 'SIGKILL');
  await first.died;
  await supervisor.ready(NEVER);
  await supervisor.stop();
  const after = supervisor.resources();

  expect(before.peakMemoryBytes).toBeGreaterThan(20_000_000);
  expect(before.cpuSeconds).toBeGreaterThan(0);
  expect(after.cpuSeconds).toBeGreaterThan(before.cpuSeconds);
  expect(after.peakMemoryBytes).toBeGreaterThanOrEqual(before.peakMemoryBytes);
});

import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { waitFor } from '../pipeline/host-process.ts';
import { caseOf, nameOf, pattern } from './cases.ts';
import { figureOf } from './figure-of.ts';
import { DRIVERS, MisbehavingHost } from './misbehaving-host.ts';

figureOf('life');

const SAID = 'driver failed and is started again';
const HEARTBEATS = { heartbeat: '500ms', misses: 5 };
/** The fifth is missed four intervals after the first. */
const DEAD_MS = 2_000;
const STOP_MS = 1_000;
/** Beside the time that is stated, on a machine that has other things to do. */
const SLACK_MS = 10_000;

const again = [
  { program: 'deletes-its-socket.mjs', fromMs: DEAD_MS },
  { program: 'wedges.mjs', fromMs: DEAD_MS },
  { program: 'answers-heartbeats-late.mjs', fromMs: DEAD_MS },
  { program: 'exits-0-in-use.mjs', fromMs: 0 },
  { program: 'dies-by-sigsegv.mjs', fromMs: 0 },
  {
    program: 'runs-out-of-memory.mjs',
    fromMs: 0,
    command: ['node', '--max-old-space-size=64', join(DRIVERS, 'runs-out-of-memory.mjs')],
  },
].map((row) => ({ command: undefined, ...row, known: caseOf(row.program) }));

test.each(again.map((row) => [nameOf(row.known), row] as const))(
  '%s',
  async (_, { program, command, fromMs, known }) => {
    const supervision = fromMs === DEAD_MS ? HEARTBEATS : {};
    const misbehaving = new MisbehavingHost(program, { command, supervision });

    misbehaving.host.start();
    const { lastFailure } = await misbehaving.untilRestarted(fromMs === DEAD_MS ? 1 : 2);

    const { prints, remedy } = known;
    expect(lastFailure?.message).toMatch(pattern(prints));
    expect(lastFailure?.remedy).toBe(remedy);
    expect(await misbehaving.untilLogged(new RegExp(SAID))).toMatchObject({
      level: 'warn',
      problem: expect.stringMatching(pattern(prints)),
      remedy,
    });
    const tookMs = misbehaving.millisBetween('driver ready', SAID);
    expect(tookMs).toBeGreaterThanOrEqual(fromMs);
    expect(tookMs).toBeLessThan(fromMs + SLACK_MS);
    // The death is what there is to say, and not that its streams broke.
    expect(misbehaving.logged().filter(({ code }) => code !== undefined)).toEqual([]);
  },
);

const sometimesLate = caseOf('answers-some-heartbeats-late.mjs');

test(nameOf(sometimesLate), async () => {
  const misbehaving = new MisbehavingHost(sometimesLate.program, { supervision: { heartbeat: '500ms', misses: 8 } });

  misbehaving.host.start();
  await misbehaving.untilStreaming();
  await misbehaving.host.until('a dozen heartbeats', ({ uptimeSec }) => uptimeSec >= 6);
  misbehaving.insert('orders', [3]);
  await misbehaving.untilIds('orders', [1, 2, 3]);

  expect(await misbehaving.host.status()).toMatchObject({ source: { restarts: 0, lastFailure: null } });
  expect(misbehaving.logged().filter(({ level }) => level !== 'info')).toEqual([]);
});

const exits2 = caseOf('exits-2-in-use.mjs');

test(nameOf(exits2), async () => {
  const misbehaving = new MisbehavingHost(exits2.program);

  expect(await misbehaving.host.start().exitCode(), misbehaving.host.output).toBe(2);

  expect(misbehaving.host.output).toContain(`error: ${exits2.prints}\n  remedy: ${exits2.remedy}\n`);
});

const stops = [
  { program: 'ignores-shutdown.mjs', fromMs: STOP_MS },
  { program: 'ignores-shutdown-and-sigterm.mjs', fromMs: 2 * STOP_MS },
].map((row) => ({ ...row, known: caseOf(row.program) }));

test.each(stops.map((row) => [nameOf(row.known), row] as const))('%s', async (_, { program, fromMs, known }) => {
  const misbehaving = new MisbehavingHost(program);
  misbehaving.host.start();
  const { source } = await misbehaving.untilStreaming();

  const beganMs = Date.now();
  expect(await misbehaving.host.stop()).toBe(0);
  const tookMs = Date.now() - beganMs;

  expect(isAlive(source.pid!)).toBe(false);
  expect(await misbehaving.untilLogged(pattern(known.prints))).toMatchObject({ level: 'warn', role: 'source' });
  expect(tookMs).toBeGreaterThanOrEqual(fromMs);
  expect(tookMs).toBeLessThan(fromMs + 2_000 + SLACK_MS);
});

const grandchildren = caseOf('leaves-grandchildren-with-its-pipes.mjs');

test(nameOf(grandchildren), async () => {
  const misbehaving = new MisbehavingHost(grandchildren.program);
  misbehaving.host.start();
  const first = (await misbehaving.untilStreaming()).source.pid!;
  const left = (await misbehaving.untilLogged(/^grandchild$/))['child'] as number;

  process.kill(first, 'SIGKILL');
  const { lastFailure } = await misbehaving.untilRestarted(1);
  expect(lastFailure?.message).toContain('was ended by SIGKILL, which nobody asked for');
  expect(isAlive(left)).toBe(false);

  const second = (await misbehaving.untilStreaming()).source.pid!;
  const living = groupOf(second);
  expect(living).toHaveLength(2);
  const beganMs = Date.now();
  expect(await misbehaving.host.stop()).toBe(0);
  const tookMs = Date.now() - beganMs;

  expect(living.filter(isAlive)).toEqual([]);
  expect(await misbehaving.untilLogged(pattern(grandchildren.prints))).toMatchObject({ role: 'source' });
  expect(tookMs).toBeLessThan(STOP_MS + 2_000 + SLACK_MS);
});

const throughShell = caseOf('sh -c');

test(nameOf(throughShell), async () => {
  const main = join(DRIVERS, 'plain-source/main.mjs');
  // With something left to do, a shell does not become the driver.
  const misbehaving = new MisbehavingHost('started-through-sh', { command: ['sh', '-c', `node '${main}'; exit $?`] });
  misbehaving.host.start();
  const leader = (await misbehaving.untilStreaming()).source.pid!;
  const [driver = 0] = groupOf(leader).filter((pid) => pid !== leader);

  process.kill(driver, 'SIGKILL');
  const { lastFailure } = await misbehaving.untilRestarted(1);
  await expectRows(misbehaving);

  expect(lastFailure?.message).toMatch(pattern(throughShell.prints));
  expect(lastFailure?.remedy).toBe(throughShell.remedy);
  await expectNothingLeft(misbehaving);
});

const throughNpx = caseOf('npx');

test(nameOf(throughNpx), async () => {
  const misbehaving = new MisbehavingHost('started-through-npx', {
    command: ['npx', '--offline', '--no', '--', 'node', join(DRIVERS, 'plain-source/main.mjs')],
  });
  const bin = join(misbehaving.folder, 'driver/node_modules/.bin');
  mkdirSync(bin, { recursive: true });
  symlinkSync(process.execPath, join(bin, 'node'));
  misbehaving.host.start();
  const leader = (await misbehaving.untilStreaming()).source.pid!;
  const others = groupOf(leader).filter((pid) => pid !== leader);
  expect(others.length).toBeGreaterThan(0);

  process.kill(leader, 'SIGKILL');
  const { lastFailure } = await misbehaving.untilRestarted(1);
  expect(others.filter(isAlive)).toEqual([]);
  await expectRows(misbehaving);

  expect(lastFailure?.message).toMatch(pattern(throughNpx.prints));
  expect(lastFailure?.remedy).toBe(throughNpx.remedy);
  await expectNothingLeft(misbehaving);
});

async function expectRows(misbehaving: MisbehavingHost): Promise<void> {
  misbehaving.insert('orders', [3]);
  await misbehaving.untilIds('orders', [1, 2, 3]);
}

/** The host ends in order, and takes all that its driver started with it. */
async function expectNothingLeft(misbehaving: MisbehavingHost): Promise<void> {
  const { source } = await waitFor('the driver', 10_000, () => misbehaving.host.status());
  const living = groupOf(source.pid!);
  expect(living.length).toBeGreaterThan(1);
  expect(await misbehaving.host.stop()).toBe(0);
  expect(living.filter(isAlive)).toEqual([]);
}

/** Processes of the group of `leader`, itself included. */
function groupOf(leader: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statOf(pid)?.group === leader);
}

/** A process that has ended and was not reaped does not live. */
function isAlive(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== null && stat.state !== 'Z' && stat.state !== 'X';
}

function statOf(pid: number): { state: string; group: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state = '', , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group) };
  } catch {
    return null;
  }
}

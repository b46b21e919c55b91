import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../pipeline/host-process.ts';
import { caseOf, nameOf, pattern } from './cases.ts';
import { figureOf } from './figure-of.ts';
import { DRIVERS, MisbehavingHost } from './misbehaving-host.ts';

figureOf('start');

const READY_MS = 1_500;
/** Beside the time that is stated, on a machine that has other things to do. */
const SLACK_MS = 10_000;

const again = [
  { program: 'never-ready.mjs', fromMs: READY_MS },
  { program: 'ready-late.mjs', fromMs: READY_MS },
  { program: 'junk-before-ready.mjs', fromMs: 0 },
  { program: 'endless-first-line.mjs', fromMs: 0 },
  { program: 'speaks-version-9.mjs', fromMs: 0 },
  { program: 'crashes-before-ready.mjs', fromMs: 0 },
  { program: 'checks-no-bearer.mjs', fromMs: 0 },
  { program: 'takes-any-token.mjs', fromMs: 0 },
].map((row) => ({ ...row, known: caseOf(row.program) }));

test.each(again.map((row) => [nameOf(row.known), row] as const))('%s', async (_, { program, fromMs, known }) => {
  const supervision = fromMs === READY_MS ? { ready: `${READY_MS}ms` } : {};
  const misbehaving = new MisbehavingHost(program, { supervision });

  misbehaving.host.start();
  const { lastFailure } = await misbehaving.untilRestarted(2);

  const { prints, remedy } = known;
  expect(lastFailure?.message).toMatch(pattern(prints));
  expect(lastFailure?.remedy).toBe(remedy);
  const said = 'driver failed and is started again';
  expect(await misbehaving.untilLogged(new RegExp(said))).toMatchObject({
    level: 'warn',
    problem: expect.stringMatching(pattern(prints)),
    remedy,
  });
  const tookMs = misbehaving.millisBetween('driver starts', said);
  expect(tookMs).toBeGreaterThanOrEqual(fromMs);
  expect(tookMs).toBeLessThan(fromMs + SLACK_MS);
});

test('a driver that is ready late runs once `supervision.ready` is raised, as the remedy says', async () => {
  const late = new MisbehavingHost('ready-late.mjs', { supervision: { ready: '30s' } });

  late.host.start();
  await late.untilStreaming();
  late.insert('orders', [3]);

  await late.untilIds('orders', [1, 2, 3]);
});

const refused = [
  { program: 'exits-2.mjs', command: undefined },
  { program: 'no-such-program', command: ['no-such-program'] },
  { program: 'wrong-interpreter', command: [join(DRIVERS, 'wrong-interpreter')] },
  { program: 'not-executable', command: [join(DRIVERS, 'not-executable')] },
].map((row) => ({ ...row, known: caseOf(row.program) }));

test.each(refused.map((row) => [nameOf(row.known), row] as const))('%s', async (_, { program, command, known }) => {
  await expectRefusal(program, command, known);
});

test.runIf(process.platform === 'linux')(nameOf(caseOf('wrong-architecture')), async () => {
  const program = join(testFolder(), 'wrong-architecture');
  const header = Buffer.from(readFileSync(process.execPath).subarray(0, 64));
  header.writeUInt16LE(process.arch === 's390x' ? 62 : 22, 18); // e_machine
  writeFileSync(program, header, { mode: 0o755 });

  await expectRefusal('wrong-architecture', [program], caseOf('wrong-architecture'));
});

async function expectRefusal(
  program: string,
  command: readonly string[] | undefined,
  { prints, remedy = '' }: { prints: string; remedy?: string },
): Promise<void> {
  const misbehaving = new MisbehavingHost(program, { command });

  expect(await misbehaving.host.start().exitCode(), misbehaving.host.output).toBe(2);

  const lines = misbehaving.host.output.split('\n');
  const at = lines.findIndex((line) => pattern(`error: ${prints}`).test(line));
  expect(at, misbehaving.host.output).toBeGreaterThanOrEqual(0);
  expect(lines[at + 1]).toMatch(pattern(`  remedy: ${remedy}`));
  expect(misbehaving.logged().filter(({ msg }) => msg === 'driver failed for good')).toMatchObject([
    { level: 'error', problem: expect.stringMatching(pattern(prints)) },
  ]);
}

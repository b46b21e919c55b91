import { closeSync, openSync } from 'node:fs';
import type { Log } from '../../../../host/observe/log.ts';
import { Supervisor } from '../../../../host/supervisor/supervisor.ts';

// Runs the fixture driver that the first argument names, and says on stderr where it is. The second argument:
// `stop-when-ready` ends in order, `exit-when-told` calls process.exit on SIGUSR2, `descriptors-left-N` has N file
// descriptors left until its first start has failed.
const [fixture = '', manner] = process.argv.slice(2);
const log: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };

const supervisor = new Supervisor({
  role: 'sink',
  driver: {
    directory: process.env['FIXTURES'] ?? process.cwd(),
    manifest: {
      name: fixture,
      version: '1.0.0',
      roles: ['sink'],
      command: ['node', `${fixture}.mjs`],
      protocolVersions: [1],
      capabilities: { idempotentWrite: true },
      env: [],
      stdout: fixture === 'writes-to-the-hosts-stdout' ? 'host' : undefined,
    },
  },
  config: () => ({}),
  settings: {
    heartbeatMs: 1_000,
    misses: 3,
    readyMs: 10_000,
    stopMs: 200,
    backoff: { firstMs: 1_000, maxMs: 1_000 },
    // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
    breaker: { failures: 3, windowMs: 60_000, holdMs: 60_000, then: 'exit' },
  },
  connect: async () => ({ heartbeat: async () => {}, shutdown: async () => {}, close() {} }),
  log,
  onChange: ({ state }) => {
    if (state === 'backing-off') for (const fd of taken.splice(0)) closeSync(fd);
  },
});

const taken: number[] = [];
const left = /^descriptors-left-(\d+)$/.exec(manner ?? '')?.[1];
if (left !== undefined) {
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    for (const fd of taken.splice(0, Number(left))) closeSync(fd);
  }
}

supervisor.start();
const { pid, endpoint } = await supervisor.ready(AbortSignal.timeout(20_000));
process.stderr.write(`${JSON.stringify({ pid, endpoint })}\n`);
if (manner === 'stop-when-ready') await supervisor.stop();
if (manner === 'exit-when-told') process.on('SIGUSR2', () => process.exit(1));

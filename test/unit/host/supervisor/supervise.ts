import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { DriverPackage, JsonSchema, Manifest } from '../../../../host/driver-packages/manifest.ts';
import {
  type DriverConnection,
  Supervisor,
  type SupervisorOptions,
  type SupervisorStatus,
} from '../../../../host/supervisor/supervisor.ts';
import { RecordingLog } from './recording-log.ts';

export const FIXTURES = fileURLToPath(new URL('../../../fixtures/drivers', import.meta.url));

export const SETTINGS = {
  heartbeatMs: 20,
  misses: 3,
  readyMs: 5_000,
  stopMs: 500,
  backoff: { firstMs: 10, maxMs: 40 },
  // biome-ignore lint/suspicious/noThenProperty: the pipeline file's own word.
  breaker: { failures: 3, windowMs: 60_000, holdMs: 50, then: 'hold' },
} as const;

/** A connection without a wire: these tests are about processes. It cannot be asked to shut down, so a signal follows. */
export const ANSWERS: DriverConnection = {
  heartbeat: async () => {},
  shutdown: () => Promise.reject(new Error('there is no wire')),
  close: () => {},
};

export function fixturePackage(
  command: readonly string[],
  manifest: Partial<Manifest> = {},
  more: { directory?: string; configSchema?: JsonSchema } = {},
): DriverPackage {
  return {
    directory: more.directory ?? FIXTURES,
    manifest: {
      name: 'fixture',
      version: '1.0.0',
      roles: ['source', 'sink'],
      command: [...command],
      protocolVersions: [1],
      capabilities: { idempotentWrite: true },
      env: [],
      ...manifest,
    },
    ...(more.configSchema === undefined ? {} : { configSchema: more.configSchema }),
  };
}

/** A supervisor of `test/fixtures/drivers/<name>.mjs` that is never left behind, with what it logged and went through. */
export function supervise(fixture: string | DriverPackage, options: Partial<SupervisorOptions> = {}) {
  const log = new RecordingLog();
  const statuses: SupervisorStatus[] = [];
  const waiting: { matches: (status: SupervisorStatus) => boolean; resolve: (status: SupervisorStatus) => void }[] = [];
  const supervisor = new Supervisor({
    role: 'source',
    driver: typeof fixture === 'string' ? fixturePackage(['node', `${fixture}.mjs`]) : fixture,
    config: () => ({}),
    settings: SETTINGS,
    connect: async () => ANSWERS,
    log,
    random: () => 0.5,
    onChange(status) {
      statuses.push(status);
      for (const { matches, resolve } of waiting) if (matches(status)) resolve(status);
    },
    ...options,
  });
  onTestFinished(() => supervisor.stop());
  return {
    supervisor,
    log,
    statuses,
    /** The next status that matches, from now on. */
    status: (matches: (status: SupervisorStatus) => boolean) =>
      new Promise<SupervisorStatus>((resolve) => waiting.push({ matches, resolve })),
    /** Starts it and waits until it is ready. */
    async started() {
      supervisor.start();
      return supervisor.ready(AbortSignal.timeout(20_000));
    },
  };
}

/** Whether a process runs; one that has ended but was not reaped does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+[ZX]/m.test(readStatus(pid));
  } catch {
    return false;
  }
}

function readStatus(pid: number): string {
  return process.platform === 'linux' ? readFileSync(`/proc/${pid}/status`, 'latin1') : '';
}

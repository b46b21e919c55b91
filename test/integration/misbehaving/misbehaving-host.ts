import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import type { PipelineStatus } from '../../../host/pipeline/status.ts';
import type { SupervisorStatus } from '../../../host/supervisor/supervisor.ts';
import { HostProcess, readJson, testFolder, waitFor } from '../pipeline/host-process.ts';

export const DRIVERS = resolve(import.meta.dirname, '../../fixtures/drivers');

/** Heartbeats as they are by default: a busy machine must not miss what a test does not ask about. */
const SUPERVISION = {
  ready: '30s',
  stop: '1s',
  backoff: { first: '100ms', max: '200ms' },
  breaker: { failures: 1000 },
};

const COLUMNS = { id: 'int64', name: 'utf8' };
const TABLES = ['orders', 'customers'];

export interface MisbehavingOptions {
  /** Default: node and the program of this name in `test/fixtures/drivers`. */
  readonly command?: readonly string[] | undefined;
  readonly role?: 'source' | 'sink';
  readonly supervision?: Record<string, unknown>;
}

/** A host of the tables `orders` and `customers`, one of whose drivers misbehaves; the other one is plain and behaves. */
export class MisbehavingHost {
  readonly host: HostProcess;
  readonly folder: string;
  readonly #role: 'source' | 'sink';
  readonly #log: string;
  readonly #out: string;

  constructor(program: string, { command, role = 'source', supervision = {} }: MisbehavingOptions = {}) {
    this.#role = role;
    this.folder = testFolder();
    this.#log = join(this.folder, 'log.jsonl');
    this.#out = join(this.folder, 'out.json');
    writeFileSync(this.#log, '');
    for (const table of TABLES) this.insert(table, [1, 2]);
    const plain = { source: join(DRIVERS, 'plain-source'), sink: join(DRIVERS, 'plain-sink') };
    const driver = driverFolder(this.folder, program, role, command ?? ['node', join(DRIVERS, program)]);
    const tables = Object.fromEntries(TABLES.map((table) => [table, { key: ['id'], columns: COLUMNS }]));
    this.host = new HostProcess({
      folder: this.folder,
      pipeline: {
        pipeline: 'misbehaving',
        source: { driver: plain.source, config: { file: this.#log, tables } },
        sink: {
          driver: plain.sink,
          config: { file: this.#out, tables: Object.fromEntries(TABLES.map((table) => [table, ['id']])) },
          flush: { interval: '50ms' },
        },
        supervision: { ...SUPERVISION, ...supervision },
        tables: TABLES.map((table) => ({ source: table, target: table, primaryKey: ['id'] })),
      },
      args: [`--${role}-plugin`, driver],
    });
  }

  /** Rows that are new at the source. */
  insert(table: string, ids: readonly number[]): void {
    const lines = ids.map((id) => JSON.stringify({ table, op: 'c', after: { id, name: `n${id}` } }));
    appendFileSync(this.#log, lines.map((line) => `${line}\n`).join(''));
  }

  /** Keys of the rows that are in the destination, in order. */
  ids(table: string): number[] {
    if (!existsSync(this.#out)) return [];
    return readJson<Record<string, { id: number }[]>>(this.#out)
      [table]!.map(({ id }) => id)
      .sort((a, b) => a - b);
  }

  /** Waits until exactly these rows are in the destination. */
  async untilIds(table: string, ids: readonly number[]): Promise<void> {
    await waitFor(
      `${table} having ${ids.join(', ')}`,
      60_000,
      async () => (this.ids(table).join() === ids.join() ? true : null),
      () => this.host.output.slice(-6_000),
    );
  }

  async untilStreaming(): Promise<PipelineStatus> {
    return this.host.until('streaming', ({ tables }) => tables.every(({ state }) => state === 'streaming'));
  }

  /** Waits until the misbehaving driver has been started again so often. */
  async untilRestarted(restarts: number): Promise<SupervisorStatus> {
    const status = await this.host.until('another start', (status) => status[this.#role].restarts >= restarts);
    return status[this.#role];
  }

  /** Lines of the host's log, oldest first. */
  logged(): LogLine[] {
    return this.host.output
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as LogLine);
  }

  /** A line of the misbehaving driver, or of the host itself: on a busy machine the other driver may have its own troubles. */
  async untilLogged(msg: RegExp): Promise<LogLine> {
    return waitFor(
      `a line of log like ${msg}`,
      60_000,
      async () =>
        this.logged().find(({ msg: text, role = this.#role }) => role === this.#role && msg.test(text)) ?? null,
      () => this.host.output.slice(-6_000),
    );
  }

  /** Between the first line of the misbehaving driver that is `from` and the next one that is `to`. */
  millisBetween(from: string, to: string): number {
    const own = this.logged().filter(({ role }) => role === this.#role);
    const began = own.findIndex(({ msg }) => msg === from);
    const ended = own.slice(began).find(({ msg }) => msg === to);
    return Date.parse(ended!.ts) - Date.parse(own[began]!.ts);
  }
}

export interface LogLine {
  level: string;
  ts: string;
  msg: string;
  [field: string]: unknown;
}

function driverFolder(parent: string, program: string, role: string, command: readonly string[]): string {
  const name = program.replace(/\.mjs$/, '');
  const folder = join(parent, 'driver');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'plugin.yaml'),
    stringify({ name, version: '0.1.0', roles: [role], command, protocolVersions: [1] }),
  );
  return folder;
}

import {
  asUrutauError,
  type CheckpointAnswer,
  type CommitRequest,
  type EnsureAnswer,
  type EnsureRequest,
  LIMIT,
  type SinkDriver,
  type TableShape,
  type TableWriter,
  type TeardownAnswer,
  type TeardownRequest,
  UrutauError,
  type WriteDescriptor,
} from '@urutau/sdk';
import { asPgError } from '../connection.ts';
import { APPEND_COLUMNS } from './append-columns.ts';
import {
  createCheckpointTable,
  listCheckpoints,
  moveCheckpoint,
  readCheckpoints,
  removeCheckpoints,
} from './checkpoints.ts';
import { clientConfig, type SinkConfig, type TargetName, targetName } from './config.ts';
import { ConnectionPool } from './connection-pool.ts';
import { ensureTarget, modeOf } from './ensure.ts';
import { type Mode, tablePlan } from './table-plan.ts';
import { PostgresTableWriter } from './table-writer.ts';
import { loadTarget, type Target } from './target.ts';

const CONNECTIONS_MAX = 8;
const CONNECTION_IDLE_MS = 30_000;

/** Writes tables into Postgres: rows and checkpoint in one transaction (`commit/1`, atomic). */
export class PostgresSink implements SinkDriver {
  readonly capabilities = {
    commit: 'atomic',
    truncate: true,
    mergeUnchanged: false,
    maxUncommitted: { bytes: LIMIT.maxUncommittedBytesMin },
  } as const;
  readonly #config: SinkConfig;
  readonly #pool: ConnectionPool;
  readonly #control: ConnectionPool;
  readonly #held = { bytes: 0 };
  /** How each table is written, as `ensure` was told. */
  readonly #modes = new Map<string, Mode>();
  readonly #writers = new Map<string, PostgresTableWriter>();
  #hasCheckpointTable = false;

  constructor(config: SinkConfig) {
    this.#config = config;
    const client = clientConfig(config);
    this.#pool = new ConnectionPool({ config: client, connectionsMax: CONNECTIONS_MAX, idleMs: CONNECTION_IDLE_MS });
    this.#control = new ConnectionPool({ config: client, connectionsMax: 1, idleMs: CONNECTION_IDLE_MS });
  }

  async ensure(request: EnsureRequest, shape: TableShape): Promise<EnsureAnswer> {
    const keyed = { ...shape, primaryKey: request.primaryKey.length > 0 ? request.primaryKey : shape.primaryKey };
    const answer = await this.#ask((client) => ensureTarget(client, this.#nameOf(request.table), request, keyed));
    if (!request.check) this.#modes.set(request.table, modeOf(request));
    return answer;
  }

  async openWriter({ table, stream }: WriteDescriptor, shape: TableShape): Promise<TableWriter> {
    const target = this.#nameOf(table);
    const existing = await this.#ask((client) => loadTarget(client, target));
    if (existing === null) {
      throw new UrutauError('table-not-found', `table ${target.full} does not exist in the destination`, { table });
    }
    const mode = this.#modes.get(table) ?? modeOfTarget(existing);
    const plan = tablePlan({ table, target, mode, shape, existing });
    const writer = new PostgresTableWriter(plan, stream, {
      pool: this.#pool,
      control: this.#control,
      held: this.#held,
    });
    this.#writers.set(table, writer);
    return writer;
  }

  async checkpoint(writer: string, tables: string[]): Promise<CheckpointAnswer> {
    const targets = tables.map((table) => this.#nameOf(table).full);
    try {
      const stored = await this.#ask((client) => readCheckpoints(client, writer, targets));
      return Object.fromEntries(
        tables.map((table, index) => [table, { checkpoint: stored.get(targets[index]!) ?? null }]),
      );
    } catch (error) {
      const { code, message, remedy } = asUrutauError(error);
      return Object.fromEntries(tables.map((table) => [table, { error: { code, message, remedy } }]));
    }
  }

  async commit(request: CommitRequest): Promise<void> {
    await this.#prepareCheckpoints();
    const writer = this.#writers.get(request.table);
    if (writer !== undefined && writer.stream === request.stream) await writer.commit(request);
    else if (request.through === 0) await this.#moveCheckpointAlone(request);
    else throw streamLost(request);
  }

  /** For a host that keeps positions itself: its streams carry no number, and their rows become durable here. */
  async flush(): Promise<void> {
    for (const writer of this.#writers.values()) if (writer.stream === undefined) await writer.commit(null);
  }

  async teardown({ writer, tables, check }: TeardownRequest): Promise<TeardownAnswer> {
    return this.#ask(async (client) => {
      const stored = await listCheckpoints(client, writer);
      const asked = tables === 'all' ? null : new Set(tables.map((table) => this.#nameOf(table).full));
      const targets = stored.filter((target) => asked === null || asked.has(target));
      const items = targets.map((target) => `checkpoint of ${target} (writer ${writer}) in urutau.checkpoints`);
      if (check || targets.length === 0) return { items };
      const isTableGone = await removeCheckpoints(client, writer, targets);
      this.#hasCheckpointTable = false;
      return { items: isTableGone ? [...items, 'table urutau.checkpoints, which was empty'] : items };
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#writers.values()].map((writer) => writer.discard()));
    this.#writers.clear();
    await Promise.all([this.#pool.close(), this.#control.close()]);
  }

  /** A stream number is raised before the stream is opened, and an idle table moves its position (CMT-12, CMT-6). */
  async #moveCheckpointAlone({ writer, table, stream, checkpoint, previous }: CommitRequest): Promise<void> {
    const target = this.#nameOf(table).full;
    await this.#ask((client) => moveCheckpoint(client, table, { writer, target, stream, checkpoint, previous }));
  }

  async #prepareCheckpoints(): Promise<void> {
    if (this.#hasCheckpointTable) return;
    await this.#ask(createCheckpointTable);
    this.#hasCheckpointTable = true;
  }

  async #ask<T>(work: Parameters<typeof ConnectionPool.prototype.use<T>>[0]): Promise<T> {
    try {
      return await this.#control.use(work);
    } catch (error) {
      throw asPgError(error, 'sink');
    }
  }

  #nameOf(table: string): TargetName {
    return targetName(table, this.#config);
  }
}

/** The rows up to `through` are nowhere, so the checkpoint that speaks of them must not be stored. */
function streamLost({ table, stream, through }: CommitRequest): UrutauError {
  return new UrutauError('stream-lost', `write stream ${stream} of ${table} is not open; batch ${through} is lost`, {
    table,
    stream,
    seq: through,
  });
}

/** Without `ensure` the target itself tells: only an append table has the columns that describe a change. */
function modeOfTarget({ columns }: Target): Mode {
  return APPEND_COLUMNS.every(({ name }) => columns.has(name))
    ? { kind: 'append', onDelete: 'record' }
    : { kind: 'upsert' };
}

import { randomUUID } from 'node:crypto';
import {
  type AssignAnswer,
  type AssignRequest,
  type Base64,
  type Capabilities,
  faultPoint,
  type Log,
  type PlanAnswer,
  type PlanRequest,
  type ProgressAnswer,
  type Read,
  type ReadDescriptor,
  type SourceBatch,
  type SourceDriver,
  type StatusAnswer,
  type TableListing,
  type TeardownAnswer,
  type TeardownRequest,
  UrutauError,
} from '@urutau/sdk';
import type pg from 'pg';
import { pgConfig } from '../connection.ts';
import { parseLsn } from '../lsn.ts';
import { decodeOffsetBase64, encodeOffsetBase64 } from '../offset.ts';
import {
  type AssignContext,
  type AssignedTable,
  answerOf,
  type CheckedAssignment,
  carryOut,
  checkAssignment,
  startsOf,
} from './assignment.ts';
import { type CatalogTable, listTables, loadTables } from './catalog.ts';
import { Claims } from './claims.ts';
import type { Clock } from './clock.ts';
import { connectionOf, type SourceConfig, type SourceSettings, settingsOf } from './config.ts';
import { exportSnapshot, readSnapshot } from './consistent-snapshot.ts';
import { emitMarker, Heartbeat } from './heartbeat.ts';
import { LogReader } from './log-reader.ts';
import { decodeRange, divide, encodeRange, storageOf } from './page-range.ts';
import { ReadView } from './read-view.ts';
import { shapeOfTable } from './row-shape.ts';
import { withRowVersions } from './row-versions.ts';
import { SideConnections } from './side-connections.ts';
import { loadSlot, waitForFreeSlot } from './slot.ts';
import { readChunk } from './snapshot-chunk.ts';
import { loadLeaves } from './storage.ts';
import type { TableOutlet } from './table-outlet.ts';
import { teardown } from './teardown.ts';

export interface PostgresSourceOptions {
  config: SourceConfig;
  log: Log;
  clock: Clock;
}

/** Tables of one Postgres database: their changes by one log reader, their rows by chunks or one consistent picture. */
export class PostgresSource implements SourceDriver {
  readonly capabilities: Capabilities = { offsetOrder: 'bytes', maxStreams: 100 };
  readonly #connection: pg.ClientConfig;
  readonly #settings: SourceSettings;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #side: SideConnections;
  readonly #claims = new Claims();
  readonly #ownPids = new Set<number>();
  readonly #heartbeat: Heartbeat;
  readonly #snapshots = new Set<() => Promise<void>>();
  #readView = new ReadView();
  #assigned = new Map<string, AssignedTable>();
  #reader: LogReader | null = null;
  /** One assignment, teardown or close at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor({ config, log, clock }: PostgresSourceOptions) {
    this.#connection = pgConfig(connectionOf(config));
    this.#settings = settingsOf(config);
    this.#log = log;
    this.#clock = clock;
    const { maxThreads, retryCount, heartbeatMs } = this.#settings;
    this.#side = new SideConnections(this.#connection, { maxThreads, retryCount, clock });
    this.#heartbeat = new Heartbeat({
      query: this.#side.query,
      clock,
      log,
      everyMs: heartbeatMs,
      decoded: () => this.#decoded(),
    });
  }

  async listTables(): Promise<TableListing[]> {
    const tables = await listTables(this.#side.query);
    return tables.map(({ table, key, estimatedRows }) => ({
      name: table,
      supportsSnapshot: true,
      ...(key.length > 0 ? { primaryKey: key } : {}),
      ...(estimatedRows === null ? {} : { estimatedRows }),
    }));
  }

  assign(request: AssignRequest): Promise<AssignAnswer> {
    return this.#inTurn(async () => {
      const context = this.#assignContext();
      const checked = await checkAssignment(request, context);
      if (request.check) return answerOf(checked, await startsOf(checked, context.query));
      if (this.#onlyRemoves(request)) return answerOf(checked, await this.#removeOthers(checked, context));
      await this.#stopReader();
      const tables = await carryOut(checked, context);
      this.#assigned = new Map(tables.map((table) => [table.table, table]));
      this.#claims.retain(new Set(this.#assigned.keys()));
      for (const { table, start } of tables) this.#claims.assign(table, start);
      await this.#startReader(tables);
      return answerOf(checked, tables);
    });
  }

  async confirm(tables: Record<string, Base64>): Promise<void> {
    faultPoint('source.confirm.asked');
    for (const [table, offset] of Object.entries(tables)) this.#claims.confirm(table, decodeOffsetBase64(offset));
    this.#release();
  }

  /** Beyond every change that a SELECT shows now; a message of our own makes sure that the reader gets beyond it. */
  async head(): Promise<Base64> {
    const [row] = await this.#side.query('SELECT pg_current_wal_insert_lsn()');
    await emitMarker(this.#side.query, this.#log);
    return encodeOffsetBase64({ lsn: parseLsn(row![0]!), index: 0n });
  }

  async progress(tables: string[]): Promise<ProgressAnswer> {
    const answers = tables.flatMap((table) => {
      const progress = this.#reader?.outlets.get(table)?.progress();
      const claim = this.#claims.get(table);
      if (!progress || !claim) return [];
      const heldBytes = Math.max(0, Number(this.#reader!.decoded - claim.lsn));
      return [[table, { ...progress, heldBytes }] as const];
    });
    return { tables: Object.fromEntries(answers) };
  }

  async plan({ table, ranges }: PlanRequest): Promise<PlanAnswer> {
    const { estimatedRows } = await this.#catalogOf(table);
    const leaves = await loadLeaves(this.#side.query, table);
    return {
      ranges: divide(leaves, ranges).map(encodeRange),
      ...(estimatedRows === null ? {} : { estimatedRows }),
    };
  }

  read(descriptor: ReadDescriptor): Promise<Read> {
    switch (descriptor.mode) {
      case 'snapshot':
        return this.#readSnapshot(descriptor);
      case 'changes':
        return this.#readChanges(descriptor);
      case 'chunk':
        return this.#readChunk(descriptor);
    }
  }

  status(): Pick<StatusAnswer, 'state' | 'tables'> {
    const outlets = [...(this.#reader?.outlets.values() ?? [])];
    const state = this.#reader?.failed
      ? 'error'
      : outlets.some(({ chunks }) => chunks > 0)
        ? 'snapshotting'
        : this.#reader
          ? 'streaming'
          : 'idle';
    const offsets = [...this.#assigned.keys()].map(
      (table) => [table, { offset: encodeOffsetBase64(this.#claims.get(table)!) }] as const,
    );
    return { state, tables: Object.fromEntries(offsets) };
  }

  teardown(request: TeardownRequest): Promise<TeardownAnswer> {
    return this.#inTurn(async () => {
      const { slotName, publicationName } = this.#settings;
      if (!request.check && request.tables === 'all') {
        await this.#stopReader();
        await this.#slotFree();
      }
      return { items: await teardown(this.#side.query, { slotName, publicationName, request }) };
    });
  }

  close(): Promise<void> {
    this.#heartbeat.stop();
    this.#closing ??= this.#inTurn(async () => {
      await this.#stopReader();
      await Promise.all([...this.#snapshots].map((end) => end()));
      await this.#side.close();
    });
    return this.#closing;
  }

  #assignContext(): AssignContext {
    return { query: this.#side.query, settings: this.#settings, clock: this.#clock, ownPids: this.#ownPids };
  }

  /** The running reader can go on: every table that stays is read just as before, and at least one leaves. */
  #onlyRemoves({ tables }: AssignRequest): boolean {
    if (this.#reader === null || this.#reader.failed || tables.length >= this.#assigned.size) return false;
    return tables.every(({ table, fromOffset, hold = false }) => {
      const goesOn = (): boolean => {
        const from = fromOffset === undefined ? null : decodeOffsetBase64(fromOffset);
        return this.#reader!.outlets.get(table)?.goesOn(from) ?? false;
      };
      return this.#assigned.get(table)?.hold === hold && (hold || goesOn());
    });
  }

  /** What stays keeps its claim on the log, and its stream. */
  async #removeOthers(checked: CheckedAssignment, context: AssignContext): Promise<AssignedTable[]> {
    const stay = checked.tables.map(({ table, from }) => {
      const assigned = this.#assigned.get(table)!;
      return { ...assigned, start: from ?? assigned.start };
    });
    this.#assigned = new Map(stay.map((table) => [table.table, table]));
    this.#claims.retain(new Set(this.#assigned.keys()));
    for (const table of [...this.#reader!.outlets.keys()]) if (!this.#assigned.has(table)) this.#reader!.remove(table);
    await carryOut(checked, context);
    this.#release();
    return stay;
  }

  async #startReader(tables: readonly AssignedTable[]): Promise<void> {
    const read = tables.filter(({ hold }) => !hold);
    if (read.length === 0) return;
    const { query } = this.#side;
    const { slotName, publicationName } = this.#settings;
    await this.#slotFree();
    const slot = await loadSlot(query, slotName);
    this.#readView = new ReadView();
    const [row] = await query('SELECT pg_current_xact_id()::text');
    this.#readView.started(row![0]!);
    this.#reader = await LogReader.start({
      config: this.#connection,
      query,
      slotName,
      publicationName,
      confirmed: slot!.confirmed!,
      tables: read.map(({ table, catalog, start, rowShape }) => {
        return { table, oid: catalog.oid, partitioned: catalog.kind === 'p', start, rowShape };
      }),
      readView: this.#readView,
      clock: this.#clock,
      log: this.#log,
    });
    this.#ownPids.clear();
    this.#ownPids.add(this.#reader.pid);
    this.#release();
    this.#heartbeat.start();
    this.#log.info('reading the log', { slot: slotName, tables: read.length, held: tables.length - read.length });
  }

  #slotFree(): Promise<void> {
    const { now, sleep } = this.#clock;
    return waitForFreeSlot(this.#side.query, this.#settings.slotName, {
      ownPids: this.#ownPids,
      waitMs: SLOT_WAIT_MS,
      now,
      sleep,
    });
  }

  async #stopReader(): Promise<void> {
    const reader = this.#reader;
    this.#reader = null;
    this.#heartbeat.stop();
    await reader?.close();
  }

  #decoded(): bigint | null {
    return this.#reader && !this.#reader.failed ? this.#reader.decoded : null;
  }

  #release(): void {
    const { least } = this.#claims;
    if (least !== null) this.#reader?.confirm(least);
  }

  async #readChanges({ table, fromOffset }: ReadDescriptor): Promise<Read> {
    if (this.#reader === null) return this.#describeChanges(table);
    const outlet = this.#outletOf(table);
    const from = fromOffset === undefined ? null : decodeOffsetBase64(fromOffset);
    outlet.expectFrom(from);
    const { rowShape } = outlet;
    const id = randomUUID();
    return {
      shape: rowShape.shape,
      metadata: { stream: id },
      open: (signal) => outlet.open({ id, from, rowShape }, signal),
    };
  }

  /** Before an assignment nothing can be read, but what the changes look like can be told. */
  async #describeChanges(table: string): Promise<Read> {
    const { shape } = shapeOfTable(await this.#catalogOf(table));
    return {
      shape,
      metadata: {},
      open: () => {
        throw notAssigned(table);
      },
    };
  }

  async #readChunk({ table, range: token, rows = ROWS_DEFAULT }: ReadDescriptor): Promise<Read> {
    if (token === undefined)
      throw new UrutauError('protocol-violation', `a chunk of ${table}: expected a range; came none`, { table });
    const outlet = this.#outletOf(table);
    const range = decodeRange(token);
    const rowShape = shapeOfTable(await this.#catalogOf(table));
    // Looked at again in the chunk's own transaction; here it comes early enough to plan anew.
    if (storageOf(await loadLeaves(this.#side.query, table)) !== range.storage) {
      throw new UrutauError('plan-lost', `${table}: its storage is another one than its ranges were planned for`, {
        table,
      });
    }
    const options = { table, rowShape, range, rows, readView: this.#readView, side: this.#side, clock: this.#clock };
    return { shape: rowShape.shape, metadata: {}, open: (signal) => counted(outlet, readChunk(options, signal)) };
  }

  async #readSnapshot({ table, rowVersions = false }: ReadDescriptor): Promise<Read> {
    const catalog = await this.#catalogOf(table);
    const rowShape = rowVersions ? withRowVersions(shapeOfTable(catalog)) : shapeOfTable(catalog);
    const storage = storageOf(await loadLeaves(this.#side.query, table));
    const snapshot = await exportSnapshot(this.#connection);
    faultPoint('source.picture.opened');
    const stopWaiting = this.#clock.after(SNAPSHOT_KEPT_MS, () => void end());
    const end = async (): Promise<void> => {
      stopWaiting();
      this.#snapshots.delete(end);
      await snapshot.close();
    };
    this.#snapshots.add(end);
    const options = {
      table,
      partitioned: catalog.kind === 'p',
      rowShape,
      picture: { snapshot: { ...snapshot, close: end }, storage },
      side: this.#side,
    };
    return {
      shape: rowShape.shape,
      metadata: { endOffset: snapshot.endOffset },
      ...(catalog.estimatedRows === null ? {} : { totalRecords: catalog.estimatedRows }),
      open: (signal) => {
        stopWaiting();
        return readSnapshot(options, signal);
      },
      release: () => void end(),
    };
  }

  #outletOf(table: string): TableOutlet {
    const outlet = this.#reader?.outlets.get(table);
    if (outlet) return outlet;
    throw notAssigned(table);
  }

  async #catalogOf(table: string): Promise<CatalogTable> {
    const catalog = (await loadTables(this.#side.query, [table])).get(table);
    if (catalog) return catalog;
    throw new UrutauError('table-not-found', `table ${table} does not exist`, { table });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  }
}

const ROWS_DEFAULT = 100_000;
const SLOT_WAIT_MS = 10_000;
/** For which a picture waits to be read: it keeps old row versions alive. */
const SNAPSHOT_KEPT_MS = 600_000;

/** While a chunk is read its table's stream may rest. */
async function* counted(outlet: TableOutlet, batches: AsyncIterable<SourceBatch>): AsyncGenerator<SourceBatch, void> {
  outlet.chunks++;
  try {
    yield* batches;
  } finally {
    outlet.chunks--;
  }
}

function notAssigned(table: string): UrutauError {
  return new UrutauError('reassign-needed', `${table} is not assigned`, {
    table,
    remedy: 'Assign the tables before reading them.',
  });
}

import {
  ACTION,
  type AssignAnswer,
  asUrutauError,
  decodeSchema,
  encodeSchema,
  type Failure,
  type ListTablesAnswer,
  rowSchema,
  shapeOfChanges,
  type TableShape,
  UrutauError,
} from '@urutau/contract';
import { acceptCheckpoint } from '../checkpoint/accept.ts';
import { type Checkpoint, decodeCheckpoint } from '../checkpoint/checkpoint.ts';
import type { CheckpointStore } from '../checkpoint/store.ts';
import type { FlightClient } from '../flight/client.ts';
import type { SinkPort } from '../pipeline/sink/port.ts';
import { openSink } from '../pipeline/sink/sink.ts';
import { openSource } from '../pipeline/source/source.ts';
import { Table } from '../pipeline/table/table.ts';
import { fingerprint } from '../pipeline/table/task.ts';
import type { Pipeline, TableSpec } from '../spec/pipeline.ts';
import type { Mask } from '../supervisor/mask.ts';
import { count } from './count.ts';
import type { WithDriver } from './with-driver.ts';

export interface ConnectionCheck {
  /** What concerns no single table. */
  readonly failures: Failure[];
  readonly tables: TableCheck[];
}

export interface TableCheck {
  readonly source: string;
  readonly target: string;
  /** What `run` would do; null when it could not be found out. */
  plan: string | null;
  /** What would be changed in the destination. */
  changes: string[];
  /** False when the source tells the table's columns only to a run, so that the target could not be held against them. */
  targetChecked: boolean;
  failures: Failure[];
}

export interface CheckOptions {
  readonly pipeline: Pipeline;
  readonly withSource: WithDriver;
  readonly withSink: WithDriver;
  /** The store of a sink that holds no positions, as it is now. */
  readonly store: () => CheckpointStore;
}

/** Asks both sides what a run would meet: every failure at once, and nothing is changed. */
export async function checkConnections({
  pipeline,
  withSource,
  withSink,
  store,
}: CheckOptions): Promise<ConnectionCheck> {
  const failures: Failure[] = [];
  const tables = pipeline.tables.map((spec) => new CheckedTable(spec));
  let sourceWasAsked = false;
  const askSource = async () => {
    sourceWasAsked = true;
    await collect(failures, () => withSource((client) => checkSource(client, pipeline, tables, failures)));
  };
  await collect(failures, () =>
    withSink(async (client) => {
      const sink = await openSink(client, pipeline.name, store);
      await readCheckpoints(sink, tables);
      await askSource();
      for (const table of tables) {
        await collect(table.failures, () => checkTarget(sink, table, pipeline, client.mask));
      }
    }),
  );
  if (!sourceWasAsked) await askSource();
  return { failures, tables: tables.map((table) => table.result(pipeline.source.snapshotMode)) };
}

class CheckedTable {
  readonly spec: TableSpec;
  readonly failures: Failure[] = [];
  /** Undefined until the destination has told. */
  checkpoint: Checkpoint | null | undefined;
  estimatedRows: number | null = null;
  shape: TableShape | null = null;
  /** What the source is called; known when it was asked. */
  identity: string | null = null;
  sourceName = '';
  changes: string[] = [];
  targetChecked = false;

  constructor(spec: TableSpec) {
    this.spec = spec;
  }

  result(snapshotMode: 'initial' | 'none'): TableCheck {
    const { spec, failures, changes, targetChecked } = this;
    const plan = failures.length > 0 || this.checkpoint === undefined ? null : this.#plan(snapshotMode);
    return { source: spec.source, target: spec.target, plan, changes, targetChecked, failures };
  }

  #plan(snapshotMode: 'initial' | 'none'): string {
    const snapshot = this.checkpoint?.snapshot;
    if (snapshot === 'done') return 'resume from its checkpoint';
    if (snapshot !== undefined && 'ranges' in snapshot)
      return `resume its snapshot with ${count(snapshot.ranges.length, 'range')} left`;
    if (snapshotMode === 'none') return 'stream from now on, without a snapshot';
    const rows = this.estimatedRows === null ? '' : ` of about ${this.estimatedRows.toLocaleString('en-US')} rows`;
    return `snapshot${rows}${snapshot === undefined ? '' : ', begun anew'}, then stream`;
  }
}

async function readCheckpoints(sink: SinkPort, tables: readonly CheckedTable[]): Promise<void> {
  const stored = await sink.checkpoints(tables.map(({ spec }) => spec.target));
  const [first, ...others] = [...stored.values()];
  // A destination that cannot be reached is one failure, and not one for each table.
  if (
    first instanceof UrutauError &&
    others.every((other) => other instanceof UrutauError && other.message === first.message)
  ) {
    throw new UrutauError(first.code, first.message, { remedy: first.remedy });
  }
  for (const table of tables) {
    const { target } = table.spec;
    await collect(table.failures, async () => {
      const answer = stored.get(target) ?? null;
      if (answer instanceof UrutauError) throw answer;
      table.checkpoint = answer === null ? null : decodeCheckpoint(answer, target);
    });
  }
}

async function checkSource(
  client: FlightClient,
  pipeline: Pipeline,
  tables: readonly CheckedTable[],
  failures: Failure[],
): Promise<void> {
  const source = await openSource(client);
  if (source.assign === null) await checkListed(client, tables);
  else await checkAssignment(source.assign, tables, failures);
  for (const table of tables) {
    table.sourceName = source.name;
    if (table.failures.length === 0 && table.checkpoint && table.identity !== null) {
      const expected = {
        writer: pipeline.name,
        source: table.identity,
        shape: fingerprint(new Table(table.spec, () => {})),
      };
      await collect(table.failures, async () => acceptCheckpoint(table.spec.target, table.checkpoint!, expected));
    }
    if (table.failures.length === 0) table.shape = await shapeOf(client, table.spec.source);
  }
}

async function checkListed(client: FlightClient, tables: readonly CheckedTable[]): Promise<void> {
  const answer = await client.action<ListTablesAnswer>(ACTION.listTables);
  const listed = new Map(answer.tables.map((table) => [table.name, table]));
  for (const table of tables) {
    const listing = listed.get(table.spec.source);
    table.estimatedRows = listing?.estimatedRows ?? null;
    table.identity = '';
    if (listing !== undefined) continue;
    const remedy = `The source has: ${[...listed.keys()].join(', ') || 'no tables'}.`;
    table.failures.push({ problem: `the source has no table ${table.spec.source}`, remedy, table: table.spec.source });
  }
}

/** Asks again without the tables that failed, so that the others are looked at too. */
async function checkAssignment(
  assign: (request: { tables: { table: string; fromOffset?: string }[]; check: true }) => Promise<AssignAnswer>,
  tables: readonly CheckedTable[],
  failures: Failure[],
): Promise<void> {
  for (let asked = tables; asked.length > 0; asked = tables.filter((table) => table.failures.length === 0)) {
    try {
      const { source, tables: answers } = await assign({ tables: asked.map(assignmentOf), check: true });
      for (const table of asked) {
        table.identity = source;
        table.estimatedRows = answers[table.spec.source]?.estimatedRows ?? null;
      }
      return;
    } catch (error) {
      const found = failuresOf(error);
      failures.push(...found.filter(({ table }) => !asked.some(({ spec }) => spec.source === table)));
      for (const table of asked) table.failures.push(...found.filter((failure) => failure.table === table.spec.source));
      if (failures.length > 0) return;
    }
  }
}

function assignmentOf({ spec, checkpoint }: CheckedTable): { table: string; fromOffset?: string; schemaId?: string } {
  const { offset = null, schemaId = null } = checkpoint ?? {};
  return {
    table: spec.source,
    ...(offset === null ? {} : { fromOffset: offset }),
    ...(schemaId === null ? {} : { schemaId }),
  };
}

/** Null when the source tells it only while it streams. */
async function shapeOf(client: FlightClient, table: string): Promise<TableShape | null> {
  try {
    const { schema } = await client.getFlightInfo({ table, mode: 'changes' });
    return shapeOfChanges(decodeSchema(schema), table);
  } catch (error) {
    if (asUrutauError(error).retry === 'reassign') return null;
    throw error;
  }
}

async function checkTarget(sink: SinkPort, table: CheckedTable, { name }: Pipeline, mask: Mask): Promise<void> {
  const { spec, shape } = table;
  table.targetChecked = sink.ensure === null || shape !== null;
  if (sink.ensure === null || shape === null || table.failures.length > 0) return;
  const { empty, changes } = await sink.ensure({
    table: spec.target,
    writer: name,
    schema: Buffer.from(encodeSchema(rowSchema(shape))).toString('base64'),
    primaryKey: [...(spec.primaryKey ?? shape.primaryKey)],
    writeMode: spec.writeMode,
    createIfNotExists: spec.createIfNotExists,
    evolve: false,
    check: true,
    options: { source: table.sourceName, onDelete: spec.onDelete },
  });
  table.changes = changes.map((change) => mask(change));
  if (empty || table.checkpoint !== null) return;
  throw new UrutauError(
    'precondition-failed',
    `the target ${spec.target} holds rows, and no checkpoint says where they come from`,
    { remedy: 'Name another target, or empty this one.' },
  );
}

/** Runs `work`; what it throws becomes failures. */
async function collect(failures: Failure[], work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // A source that is away says so to every question.
    const told = new Set(failures.map(({ problem }) => problem));
    failures.push(...failuresOf(error).filter(({ problem }) => !told.has(problem)));
  }
}

function failuresOf(error: unknown): readonly Failure[] {
  const { message, remedy, context } = asUrutauError(error);
  if (context.failures !== undefined && context.failures.length > 0) return context.failures;
  return [{ problem: message, remedy, ...(context.table === undefined ? {} : { table: context.table }) }];
}

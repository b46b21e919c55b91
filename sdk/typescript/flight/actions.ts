import {
  ACTION,
  type ActionName,
  type CommitRequest,
  type DescribeAnswer,
  decodeSchema,
  type EnsureRequest,
  EXTENSION,
  type ExtensionName,
  LIMIT,
  shapeOfRows,
  UrutauError,
} from '@urutau/contract';
import type { SinkDriver, SourceDriver } from '../define.ts';
import { faultPoint } from '../fault-point.ts';
import type { WriteStreams } from './write-streams.ts';

/** Answers with a JSON value, or undefined for an empty body. */
// biome-ignore lint/suspicious/noExplicitAny: each handler states the shape of its own request
export type ActionHandler = (request: any) => Promise<unknown> | unknown;

/** The actions that the driver implements, by name; what is absent is not listed. */
export type ActionTable = ReadonlyMap<ActionName, ActionHandler>;

interface Identity {
  name: string;
  version: string;
}

interface Life {
  heartbeat(): void;
  shutdown(): void;
  uptimeSec(): number;
}

export function sourceActions(driver: SourceDriver, identity: Identity, life: Life): ActionTable {
  return table([
    ...common(driver, life),
    [ACTION.listTables, async () => ({ tables: await driver.listTables() })],
    [ACTION.describe, () => describe(driver, identity, 'source', sourceExtensions(driver))],
    [ACTION.flush, driver.flush && (() => driver.flush!())],
    [ACTION.assign, driver.assign && ((request) => driver.assign!(request))],
    [ACTION.confirm, driver.confirm && (({ tables }) => driver.confirm!(tables))],
    [ACTION.head, driver.head && (async () => ({ offset: await driver.head!() }))],
    [ACTION.progress, driver.progress && (({ tables }) => driver.progress!(tables))],
    [ACTION.plan, driver.plan && ((request) => driver.plan!(request))],
    [ACTION.compare, driver.compare && ((request) => driver.compare!(request))],
  ]);
}

export function sinkActions(driver: SinkDriver, identity: Identity, life: Life, streams: WriteStreams): ActionTable {
  return table([
    ...common(driver, life),
    [ACTION.listTables, driver.listTables && (async () => ({ tables: await driver.listTables!() }))],
    [ACTION.describe, () => describe(driver, identity, 'sink', sinkExtensions(driver))],
    [ACTION.flush, () => driver.flush()],
    [ACTION.ensure, driver.ensure && ((request: EnsureRequest) => driver.ensure!(request, shapeIn(request)))],
    [ACTION.checkpoint, driver.checkpoint && (({ writer, tables }) => driver.checkpoint!(writer, tables))],
    [ACTION.commit, driver.commit && ((request: CommitRequest) => commit(driver, request, streams))],
  ]);
}

function common(driver: SourceDriver | SinkDriver, life: Life): [ActionName, ActionHandler | undefined][] {
  return [
    [ACTION.heartbeat, () => life.heartbeat()],
    [ACTION.shutdown, () => life.shutdown()],
    [ACTION.status, () => status(driver, life)],
    [ACTION.teardown, driver.teardown && ((request) => driver.teardown!(request))],
    [ACTION.metrics, driver.metrics && (() => driver.metrics!())],
  ];
}

function table(entries: [ActionName, ActionHandler | undefined][]): ActionTable {
  return new Map(entries.filter((entry): entry is [ActionName, ActionHandler] => entry[1] !== undefined));
}

/** ACT-3: never fails, whatever the driver's own answer does. */
function status(driver: SourceDriver | SinkDriver, life: Life): unknown {
  const uptimeSec = life.uptimeSec();
  try {
    return { state: 'idle', tables: {}, ...driver.status?.(), uptimeSec };
  } catch {
    return { state: 'error', tables: {}, uptimeSec };
  }
}

function describe(
  { capabilities = {} }: SourceDriver | SinkDriver,
  { name, version }: Identity,
  role: 'source' | 'sink',
  extensions: ExtensionName[],
): DescribeAnswer {
  return { name, version, role, extensions, capabilities };
}

function sourceExtensions(driver: SourceDriver): ExtensionName[] {
  const extensions: ExtensionName[] = [EXTENSION.tableSchema, EXTENSION.envelope];
  if (driver.assign) extensions.push(EXTENSION.assign);
  if (driver.confirm) extensions.push(EXTENSION.confirm);
  if (driver.head && driver.progress) extensions.push(EXTENSION.progress);
  if (driver.plan) extensions.push(EXTENSION.chunks);
  if (driver.compare) extensions.push(EXTENSION.compare);
  if (driver.metrics) extensions.push(EXTENSION.metrics);
  return extensions;
}

function sinkExtensions(driver: SinkDriver): ExtensionName[] {
  const extensions: ExtensionName[] = [EXTENSION.envelope];
  if (driver.ensure) extensions.push(EXTENSION.ensure);
  if (driver.checkpoint && driver.commit) extensions.push(EXTENSION.commit);
  if (driver.metrics) extensions.push(EXTENSION.metrics);
  return extensions;
}

function shapeIn(request: EnsureRequest) {
  const shape = shapeOfRows(decodeSchema(Buffer.from(request.schema, 'base64')));
  return { ...shape, primaryKey: request.primaryKey };
}

async function commit(driver: SinkDriver, request: CommitRequest, streams: WriteStreams): Promise<void> {
  const { table, stream, through, checkpoint, previous } = request;
  if (checkpoint === previous) {
    throw new UrutauError('config-invalid', `the checkpoint of ${table} equals the previous one (CMT-8)`, { table });
  }
  const bytes = Buffer.byteLength(checkpoint);
  if (bytes > LIMIT.checkpointBytesMax) {
    const problem = `the checkpoint of ${table} has ${bytes} bytes, over the limit of ${LIMIT.checkpointBytesMax}`;
    throw new UrutauError('protocol-violation', problem, { table });
  }
  await streams.raise(table, stream);
  await streams.waitFor(table, stream, through);
  faultPoint('sink.commit.asked');
  await driver.commit!(request);
  streams.committed(table, stream, through);
}

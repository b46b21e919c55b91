import {
  ACTION,
  type AssignAnswer,
  type Base64,
  type CompareAnswer,
  changeSchema,
  type DescribeAnswer,
  decodeSchema,
  EXTENSION,
  type FlightInfo,
  LIMIT,
  METADATA,
  type PlanAnswer,
  type ProgressAnswer,
  type ReadDescriptor,
  type ReadMetadata,
  rowSchema,
  type StatusAnswer,
  shapeOfChanges,
  shapeOfRows,
  type TableShape,
  UrutauError,
} from '@urutau/contract';
import type { Schema } from 'apache-arrow';
import type { FlightClient } from '../../flight/client.ts';
import type { ReadStream } from '../../flight/read-stream.ts';
import { type Batch, batchOf } from '../batch.ts';
import { describeChanges, wrapRows } from './base-batches.ts';
import { forwardOnly } from './forward-only.ts';
import type { ChangesFeed, Order, SnapshotFeed, SourcePort } from './port.ts';

const BASE: DescribeAnswer = { name: 'base driver', version: '', role: 'source', extensions: [], capabilities: {} };

/** A confirmation that takes longer is made again: nothing may wait for it for ever. */
const CONFIRM_MS = 10_000;

/** Asks the driver what it is, and makes the port that fits. */
export async function openSource(client: FlightClient, signal?: AbortSignal): Promise<SourcePort> {
  const actions = new Set(await client.listActions({ signal }));
  const described = actions.has(ACTION.describe)
    ? await client.action<DescribeAnswer>(ACTION.describe, undefined, { signal })
    : BASE;
  return portOf(client, described, signal);
}

function portOf(client: FlightClient, described: DescribeAnswer, signal?: AbortSignal): SourcePort {
  const has = (extension: string) => described.extensions.includes(extension);
  const cancellable: Cancellable = {
    action: (type, request) => client.action(type, request, { signal }),
    getFlightInfo: (descriptor) => client.getFlightInfo(descriptor, { signal }),
    read: (info, table) => client.read(info, table, { signal }),
  };
  return {
    within: (other) => portOf(client, described, other),
    name: described.name,
    streamsMax: described === BASE ? LIMIT.baseStreamsMax : null,
    capabilities: described.capabilities,
    assign: has(EXTENSION.assign) ? (request) => cancellable.action<AssignAnswer>(ACTION.assign, request) : null,
    chunks: has(EXTENSION.chunks)
      ? {
          plan: (table, ranges) => plan(cancellable, table, ranges),
          read: async (table, range, { rows, notBefore }) => {
            const info = await cancellable.getFlightInfo({ table, mode: 'chunk', range, rows, notBefore });
            return recordsFeed(cancellable, info, table);
          },
        }
      : null,
    changes: async (table, fromOffset) => {
      checkOffset(fromOffset, has(EXTENSION.envelope));
      const info = await cancellable.getFlightInfo({
        table,
        mode: 'changes',
        ...(fromOffset === null ? {} : { fromOffset }),
      });
      const { offsetOrder } = described.capabilities;
      const check = forwardOnly(table, { from: fromOffset, offsetOrder });
      return checked(recordsFeed(cancellable, info, table), check);
    },
    snapshot: (table) => snapshotFeed(cancellable, table),
    confirm: has(EXTENSION.confirm)
      ? (tables) => client.action(ACTION.confirm, { tables }, { timeoutMs: CONFIRM_MS })
      : null,
    progress: has(EXTENSION.progress)
      ? {
          head: async () => (await cancellable.action<{ offset: Base64 }>(ACTION.head)).offset,
          of: async (tables) => (await cancellable.action<ProgressAnswer>(ACTION.progress, { tables })).tables,
        }
      : null,
    compare: comparer(cancellable, described),
    lag: async () => {
      const { tables } = await cancellable.action<StatusAnswer>(ACTION.status);
      return Object.fromEntries(Object.entries(tables ?? {}).map(([table, { lagEvents }]) => [table, lagEvents]));
    },
  };
}

/** The client's calls, each of which ends with the port's signal. */
interface Cancellable {
  action<Answer>(type: string, request?: unknown): Promise<Answer>;
  getFlightInfo(descriptor: ReadDescriptor): Promise<FlightInfo>;
  read(info: FlightInfo, table: string): ReadStream;
}

async function plan(client: Cancellable, table: string, ranges: number) {
  const answer = await client.action<PlanAnswer>(ACTION.plan, { table, ranges });
  return { ranges: answer.ranges, estimatedRows: answer.estimatedRows ?? null };
}

function comparer(client: Cancellable, { capabilities, extensions }: DescribeAnswer): SourcePort['compare'] {
  if (capabilities.offsetOrder === 'bytes') {
    return async (a, b) => Buffer.compare(Buffer.from(a, 'base64'), Buffer.from(b, 'base64')) as Order;
  }
  if (!extensions.includes(EXTENSION.compare)) return async (a, b) => (a === b ? 0 : null);
  return async (a, b) => {
    const { orders } = await client.action<CompareAnswer>(ACTION.compare, { pairs: [[a, b]] });
    return orders[0] ?? null;
  };
}

/** A feed whose batches pass `check`, which throws, before anybody sees them. */
function checked(feed: ChangesFeed, check: (batch: Batch['envelope']) => void): ChangesFeed {
  return {
    ...feed,
    next: async () => {
      const batch = await feed.next();
      if (batch !== null) check(batch.envelope);
      return batch;
    },
  };
}

/** Change records: of the changes, or of a chunk. */
function recordsFeed(client: Cancellable, info: FlightInfo, table: string): ChangesFeed {
  const announced = decodeSchema(info.schema);
  const shape = shapeOfChanges(announced, table);
  const { stream = null } = metadataOf(info, table);
  const reader = new CheckedReader(client.read(info, table), announced, table);
  return {
    shape,
    stream,
    next: () =>
      reader.next((header, body, envelope, seq) =>
        batchOf(envelope ?? { seq, ...describeChanges(announced, header, joined(body)) }, header, body),
      ),
    close: () => reader.close(),
  };
}

/** HOST-6: rows of a base snapshot become change records; their buffers are used again. */
async function snapshotFeed(client: Cancellable, table: string): Promise<SnapshotFeed> {
  const info = await client.getFlightInfo({ table, mode: 'snapshot' });
  const { endOffset } = metadataOf(info, table);
  if (endOffset === undefined) {
    throw new UrutauError('protocol-violation', `the snapshot of ${table} names no endOffset (INFO-6)`, { table });
  }
  const announced = decodeSchema(info.schema);
  const shape = await shapeOfItsChanges(client, announced, table, endOffset);
  const reader = new CheckedReader(client.read(info, table), announced, table);
  const offset = Buffer.from(endOffset, 'base64');
  return {
    shape,
    endOffset,
    next: () =>
      reader.next((header, body, envelope, seq) => {
        const wrapped = wrapRows(changeSchema(shape), header, joined(body), offset);
        const { rows } = wrapped;
        return batchOf(
          { seq: envelope?.seq ?? seq, rows, offset: endOffset, phase: 'snapshot', ops: { c: rows } },
          wrapped.header,
          wrapped.body,
        );
      }),
    close: () => reader.close(),
  };
}

/** With `table-schema/1` the rows' own schema says what the changes look like; a base source is asked for them. */
async function shapeOfItsChanges(client: Cancellable, rows: Schema, table: string, endOffset: string) {
  if (rows.metadata.has(METADATA.before)) return shapeOfRows(rows);
  const changes = await client.getFlightInfo({
    table,
    mode: 'changes',
    ...(endOffset === '' ? {} : { fromOffset: endOffset }),
  });
  const shape = shapeOfChanges(decodeSchema(changes.schema), table);
  checkSameRows(shapeOfRows(rows), shape, table);
  return shape;
}

type MakeBatch = (
  header: Uint8Array,
  body: readonly Uint8Array[],
  envelope: Batch['envelope'] | null,
  seq: number,
) => Batch;

/** Reads batches and checks, before the first one, that the stream's schema is the announced one. */
class CheckedReader {
  readonly #stream: ReadStream;
  readonly #announced: Schema;
  readonly #table: string;
  #started = false;
  #seq = 0;

  constructor(stream: ReadStream, announced: Schema, table: string) {
    this.#stream = stream;
    this.#announced = announced;
    this.#table = table;
  }

  async next(make: MakeBatch): Promise<Batch | null> {
    if (!this.#started) {
      const schema = await this.#stream.schema();
      if (String(schema) !== String(this.#announced)) {
        const problem = `the stream of ${this.#table} has another schema than its FlightInfo announced`;
        throw new UrutauError('protocol-violation', problem, { table: this.#table });
      }
      this.#started = true;
    }
    for (;;) {
      const received = await this.#stream.next();
      if (received === null) return null;
      const { envelope, header, body } = received;
      if (header.length === 0) {
        if (envelope === null) continue;
        const problem = `the stream of ${this.#table} has an envelope without a batch (ENVL-1)`;
        throw new UrutauError('protocol-violation', problem, { table: this.#table });
      }
      const batch = make(header, body, envelope, ++this.#seq);
      // CHG-8: an empty batch of a base driver only shows that the stream lives.
      if (envelope !== null || batch.envelope.rows > 0) return batch;
    }
  }

  close(): void {
    this.#stream.close();
  }
}

/** A base driver's batch must be looked into; an extension's passes in its pieces. */
function joined(body: readonly Uint8Array[]): Uint8Array {
  return body.length === 1 ? body[0]! : Buffer.concat(body);
}

function metadataOf(info: FlightInfo, table: string): ReadMetadata {
  if (info.appMetadata.length === 0) return {};
  try {
    return JSON.parse(Buffer.from(info.appMetadata).toString());
  } catch (cause) {
    throw new UrutauError('protocol-violation', `app_metadata of ${table} is not JSON (INFO-6)`, { table, cause });
  }
}

function checkOffset(offset: string | null, envelope: boolean): void {
  const limit = envelope ? LIMIT.envelopeOffsetBytesMax : LIMIT.offsetBytesMax;
  const bytes = offset === null ? 0 : Buffer.from(offset, 'base64').length;
  if (bytes > limit) {
    throw new UrutauError('protocol-violation', `an offset of ${bytes} bytes is over the limit of ${limit}`);
  }
}

function checkSameRows(snapshot: TableShape, changes: TableShape, table: string): void {
  if (String(rowSchema(snapshot)) === String(rowSchema(changes))) return;
  throw new UrutauError(
    'protocol-violation',
    `${table}: the snapshot's columns (${rowSchema(snapshot)}) are not those of the changes (${rowSchema(changes)})`,
    { table },
  );
}

import {
  ACTION,
  asUrutauError,
  type CheckpointAnswer,
  type DescribeAnswer,
  type EnsureAnswer,
  EXTENSION,
  LIMIT,
  UrutauError,
} from '@urutau/contract';
import type { CheckpointStore } from '../../checkpoint/store.ts';
import type { FlightClient } from '../../flight/client.ts';
import { committingSink } from './committing-sink.ts';
import { flushingSink } from './flushing-sink.ts';
import type { SinkPort } from './port.ts';

const BASE: DescribeAnswer = { name: 'base driver', version: '', role: 'sink', extensions: [], capabilities: {} };

/**
 * Asks the driver what it is, until `signal` aborts: what it answers outlives that. A sink without `commit/1` gets its
 * positions kept in `store`.
 */
export async function openSink(
  client: FlightClient,
  writer: string,
  store: () => CheckpointStore,
  signal?: AbortSignal,
): Promise<SinkPort> {
  const actions = new Set(await client.listActions({ signal }));
  const described = actions.has(ACTION.describe)
    ? await client.action<DescribeAnswer>(ACTION.describe, undefined, { signal })
    : BASE;
  const commits = described.extensions.includes(EXTENSION.commit);
  return {
    name: described.name,
    streamsMax: described === BASE ? LIMIT.baseStreamsMax : null,
    takesEvents: described.extensions.includes(EXTENSION.envelope),
    capabilities: described.capabilities,
    positions: commits ? 'sink' : 'store',
    ensure: described.extensions.includes(EXTENSION.ensure)
      ? (request, signal) => client.action<EnsureAnswer>(ACTION.ensure, request, { signal })
      : null,
    checkpoints: (tables, signal) =>
      commits ? checkpointsOfSink(client, writer, tables, signal) : checkpointsOfStore(store(), writer, tables),
    open: (table, stream, shape) =>
      commits
        ? committingSink(client, writer, table, stream, shape)
        : flushingSink(client, writer, table, shape, store()),
  };
}

async function checkpointsOfSink(
  client: FlightClient,
  writer: string,
  tables: readonly string[],
  signal?: AbortSignal,
) {
  const answer = await client.action<CheckpointAnswer>(ACTION.checkpoint, { writer, tables }, { signal });
  return new Map(
    tables.map((table): [string, string | null | UrutauError] => {
      const entry = answer[table];
      if (entry === undefined) {
        const problem = `the sink answered nothing about the checkpoint of ${table} (CMT-1)`;
        return [table, new UrutauError('protocol-violation', problem, { table })];
      }
      if ('error' in entry) {
        const { code, message, remedy } = entry.error;
        const options = { table, ...(remedy === undefined ? {} : { remedy: client.mask(remedy) }) };
        return [table, new UrutauError(code, client.mask(message), options)];
      }
      return [table, entry.checkpoint];
    }),
  );
}

async function checkpointsOfStore(store: CheckpointStore, writer: string, tables: readonly string[]) {
  return new Map(
    tables.map((table): [string, string | null | UrutauError] => {
      try {
        return [table, store.read(writer, table)];
      } catch (error) {
        return [table, asUrutauError(error, 'sink-unavailable', { table })];
      }
    }),
  );
}

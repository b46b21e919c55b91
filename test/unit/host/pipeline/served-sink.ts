import { once } from 'node:events';
import { type ChangeBatch, ChangeBatchBuilder, type CommitRequest, type Envelope, type SinkDriver } from '@urutau/sdk';
import { onTestFinished } from 'vitest';
import { FlightClient } from '../../../../host/flight/client.ts';
import { type Batch, batchOf } from '../../../../host/pipeline/batch.ts';
import { sinkActions } from '../../../../sdk/typescript/flight/actions.ts';
import { createFlightServer } from '../../../../sdk/typescript/flight/server.ts';
import { WriteStreams } from '../../../../sdk/typescript/flight/write-streams.ts';
import { SHAPE } from './shape.ts';

const TOKEN = 'token';

/** A sink that notes what it is asked for, served over Flight in this process, and a client of it. */
export async function servedSink({
  write = async () => {},
  commit = async () => {},
  flush = async () => {},
}: Answers = {}) {
  const calls: string[] = [];
  const requests: CommitRequest[] = [];
  const changed = new EventTarget();
  const note = (call: string) => {
    calls.push(call);
    changed.dispatchEvent(new Event('call'));
  };
  const driver: SinkDriver = {
    flush: async () => {
      note('flush');
      await flush();
    },
    checkpoint: async (_, tables) => Object.fromEntries(tables.map((table) => [table, { checkpoint: null }])),
    commit: async (request) => {
      requests.push(request);
      note(`commit through ${request.through}`);
      await commit(request);
    },
    openWriter: async () => {
      note('open');
      return {
        write: async (batch, envelope) => {
          note(`${envelope.seq}: ${envelope.cut ? 'cut' : `${batch?.rows ?? 0} rows`}`);
          await write(envelope, batch);
        },
        end: async () => note('end'),
        discard: async () => note('discard'),
      };
    },
    close: async () => {},
  };
  const streams = new WriteStreams();
  const life = { heartbeat: () => {}, shutdown: () => {}, uptimeSec: () => 0 };
  const actions = sinkActions(driver, { name: 'noting', version: '1.0.0' }, life, streams);
  const server = createFlightServer({ role: 'sink', driver, streams }, actions, TOKEN);
  const port = await server.listen('127.0.0.1:0');
  const client = await FlightClient.connect('sink', `127.0.0.1:${port}`, TOKEN);
  onTestFinished(async () => {
    client.close();
    await server.close();
  });
  /** Resolves when the sink has been asked for it. */
  const asked = async (call: string) => {
    while (!calls.includes(call)) await once(changed, 'call');
  };
  return { client, calls, requests, asked };
}

interface Answers {
  write?: (envelope: Envelope, batch: ChangeBatch | null) => Promise<void>;
  commit?: (request: CommitRequest) => Promise<void>;
  flush?: () => Promise<void>;
}

/** A batch of inserts. */
export function rows(count: number): Batch {
  const builder = new ChangeBatchBuilder(SHAPE);
  for (let row = 0; row < count; row++) builder.close('c', Uint8Array.of(row), null);
  const { header, body, ops } = builder.finish();
  return batchOf({ seq: 1, rows: count, ops }, header, body);
}

/** A promise that the test settles. */
export function held(): { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  return { promise, resolve, reject };
}

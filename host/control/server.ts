import type { IncomingMessage } from 'node:http';
import { UrutauError } from '@urutau/contract';
import { z } from 'zod';
import { type Answer, closeServer, createHttpServer } from '../observe/http-server.ts';
import type { Log } from '../observe/log.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import { claim } from './claim.ts';
import { type HostStatus, parseResetPath, parseTablePath, STATUS_PATH } from './messages.ts';

/** What is used of the pipeline. */
export type ControlledPipeline = Pick<
  Pipeline,
  'status' | 'pause' | 'resume' | 'resync' | 'commit' | 'replay' | 'resetDriver'
>;

export interface ControlOptions {
  stateDir: string;
  pipeline: ControlledPipeline;
  log: Log;
}

/**
 * Serves the control socket of a state folder. It is the folder's lock too, so it comes before any driver is started:
 * `config-invalid` when another host lives there.
 */
export async function serveControl({ stateDir, pipeline, log }: ControlOptions): Promise<{ close(): Promise<void> }> {
  const server = createHttpServer((request) => answer(request, pipeline), log);
  const release = await claim(server, stateDir);
  return {
    async close() {
      await closeServer(server);
      await release();
    },
  };
}

async function answer(request: IncomingMessage, pipeline: ControlledPipeline): Promise<Answer> {
  const { method, url = '/' } = request;
  if (url === STATUS_PATH) {
    if (method !== 'GET') return notAllowed('GET');
    return { status: 200, body: { ...pipeline.status(), pid: process.pid } satisfies HostStatus };
  }
  const role = parseResetPath(url);
  if (role !== null) {
    if (method !== 'POST') return notAllowed('POST');
    parse(noOptions, await jsonOf(request));
    pipeline.resetDriver(role);
    return { status: 200, body: pipeline.status()[role] };
  }
  const asked = parseTablePath(url);
  if (asked === null) return { status: 404, body: { message: `nothing is served at ${url}` } };
  if (method !== 'POST') return notAllowed('POST');
  const { table, action } = asked;
  const body = await jsonOf(request);
  switch (action) {
    case 'pause':
      parse(noOptions, body);
      await pipeline.pause(table);
      break;
    case 'resume':
      parse(noOptions, body);
      await pipeline.resume(table);
      break;
    case 'resync':
      await pipeline.resync(table, parse(resyncOptions, body));
      break;
    case 'commit':
      parse(noOptions, body);
      await pipeline.commit(table);
      break;
    case 'replay':
      parse(noOptions, body);
      return { status: 200, body: await pipeline.replay(table) };
  }
  return {
    status: 200,
    body: pipeline.status().tables.find(({ source, target }) => source === table || target === table),
  };
}

const noOptions = z.strictObject({});
const resyncOptions = z.strictObject({ discardHistory: z.boolean().default(false) });

function notAllowed(allow: string): Answer {
  return { status: 405, body: { message: `expected ${allow}` }, headers: { allow } };
}

const BODY_BYTES_MAX = 65_536;

/** An empty body is `{}`. */
async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw badRequest(`its body is over ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw badRequest('its body is not JSON');
  }
}

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw badRequest(result.error.issues.map(({ path, message }) => [...path, message].join(': ')).join('; '));
}

function badRequest(problem: string): UrutauError {
  return new UrutauError('config-invalid', `the request cannot be read: ${problem}`, {
    remedy: 'Use the version of urutau-host that runs.',
  });
}

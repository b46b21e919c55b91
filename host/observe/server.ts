import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { UrutauError } from '@urutau/contract';
import { Registry } from 'prom-client';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { PipelineStatus } from '../pipeline/status.ts';
import { driverTrouble } from './driver-trouble.ts';
import { type Answer, closeServer, createHttpServer } from './http-server.ts';
import type { Log } from './log.ts';

export interface ObservationOptions {
  /** `127.0.0.1:9187`, `[::1]:9187`; without a host, loopback; port 0 is any free one. */
  address: string;
  pipeline: Pick<Pipeline, 'status' | 'ready'>;
  /** OpenMetrics text. */
  scrape: () => Promise<string>;
  log: Log;
}

/** Serves /metrics, /healthz, /readyz and /statusz. Resolves, with the address that it is bound to, once it accepts. */
export async function serveObservation(
  options: ObservationOptions,
): Promise<{ address: string; close(): Promise<void> }> {
  const { host, port } = parseAddress(options.address);
  const server = createHttpServer((request) => answer(request, options), options.log);
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw cannotListen(options.address, error as NodeJS.ErrnoException);
  }
  const bound = server.address() as { address: string; port: number; family: string };
  return {
    address: `${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`,
    close: () => closeServer(server),
  };
}

function parseAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new UrutauError('config-invalid', `--metrics-addr: expected HOST:PORT; came ${JSON.stringify(address)}`, {
      remedy: 'Write it as 127.0.0.1:9187; port 0 takes any free one.',
    });
  }
  return { host: match[1] || match[2] || '127.0.0.1', port };
}

function cannotListen(address: string, cause: NodeJS.ErrnoException): UrutauError {
  const why = cause.code === 'EADDRINUSE' ? 'something else listens there' : cause.message;
  return new UrutauError('config-invalid', `--metrics-addr: cannot listen on ${address}: ${why}`, {
    cause,
    remedy: 'Choose another --metrics-addr; port 0 takes any free one.',
  });
}

const PATHS: Readonly<Record<string, (options: ObservationOptions) => Answer | Promise<Answer>>> = {
  '/metrics': async ({ scrape }) => ({ status: 200, body: await scrape(), type: Registry.OPENMETRICS_CONTENT_TYPE }),
  '/healthz': () => ({ status: 200, body: { status: 'alive' } }),
  '/readyz': ({ pipeline }) => {
    const reasons = reasonsAgainst(pipeline.status(), pipeline.ready);
    return { status: reasons.length === 0 ? 200 : 503, body: { ready: reasons.length === 0, reasons } };
  },
  '/statusz': ({ pipeline }) => ({ status: 200, body: pipeline.status() }),
};

function answer({ method, url = '/' }: IncomingMessage, options: ObservationOptions): Answer | Promise<Answer> {
  const path = url.replace(/\?.*$/s, '');
  const found = Object.hasOwn(PATHS, path) ? PATHS[path] : undefined;
  if (found === undefined) {
    return { status: 404, body: { message: 'nothing is served here', paths: Object.keys(PATHS) } };
  }
  if (method !== 'GET' && method !== 'HEAD') {
    return { status: 405, body: { message: `${path} is only read` }, headers: { allow: 'GET, HEAD' } };
  }
  return found(options);
}

function reasonsAgainst(status: PipelineStatus, carried: boolean): string[] {
  const reasons = (['source', 'sink'] as const)
    .map((role) => driverTrouble(role, status[role]))
    .filter((trouble) => trouble !== null);
  return carried || reasons.length > 0 ? reasons : ['no session carries the tables yet'];
}

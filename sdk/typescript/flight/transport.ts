import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Server } from '@grpc/grpc-js';
import { FLIGHT_METHOD } from '@urutau/contract';

/** Bytes a peer may send before it must wait for us; the default of 64 KiB holds a relay at a third of its speed. */
const WINDOW_BYTES = 8 * 1024 * 1024;

export interface Transport {
  /** Every connection ends at once, with whatever was on its way. */
  breakConnections(): void;
  /** Our end of each DoGet and DoPut closes without a status. */
  halfCloseStreams(): void;
}

/**
 * What lies below the server's calls. grpc-js sets the receive window of clients only, and shows no connection; for a
 * server both are reached through private members, so everything is optional: where a later version has renamed them
 * the transport works as before, only slower.
 */
export function openTransport(server: Server): Transport {
  const sessions = new Set<ServerHttp2Session>();
  const streams = new Set<ServerHttp2Stream>();
  const internals = server as unknown as {
    commonServerOptions?: { settings?: Record<string, unknown> };
    createHttp2Server?: (...args: unknown[]) => Http2Server;
  };
  if (internals.commonServerOptions) {
    internals.commonServerOptions.settings = {
      ...internals.commonServerOptions.settings,
      initialWindowSize: WINDOW_BYTES,
    };
  }
  const create = internals.createHttp2Server?.bind(server);
  if (create) {
    internals.createHttp2Server = (...args) => {
      const http2Server = create(...args);
      http2Server.on('session', (session: ServerHttp2Session) => {
        session.setLocalWindowSize(WINDOW_BYTES);
        keepWhileOpen(sessions, session);
      });
      http2Server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        if (DATA_PATHS.has(headers[':path'] ?? '')) keepWhileOpen(streams, stream);
      });
      return http2Server;
    };
  }
  return {
    breakConnections: () => {
      for (const session of sessions) session.destroy();
    },
    halfCloseStreams: () => {
      for (const stream of streams) {
        stream.once('wantTrailers', () => stream.close());
        stream.end();
      }
    },
  };
}

const DATA_PATHS: ReadonlySet<string> = new Set([FLIGHT_METHOD.doGet, FLIGHT_METHOD.doPut]);

function keepWhileOpen<T extends ServerHttp2Session | ServerHttp2Stream>(open: Set<T>, each: T): void {
  open.add(each);
  each.once('close', () => open.delete(each));
}

import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Server } from '@grpc/grpc-js';

/** Bytes a peer may send before it must wait for us; the default of 64 KiB holds a relay at a third of its speed. */
const WINDOW_BYTES = 8 * 1024 * 1024;

export interface Transport {
  /** Every connection ends at once, with whatever was on its way. */
  breakConnections(): void;
}

/**
 * What lies below the server's calls. grpc-js sets the receive window of clients only, and shows no connection; for a
 * server both are reached through private members, so everything is optional: where a later version has renamed them
 * the transport works as before, only slower.
 */
export function openTransport(server: Server): Transport {
  const sessions = new Set<ServerHttp2Session>();
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
        sessions.add(session);
        session.once('close', () => sessions.delete(session));
      });
      return http2Server;
    };
  }
  return {
    breakConnections: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** Our end of the call's stream closes without a status; the other end stays open. */
export function halfClose(call: object): void {
  const { stream } = (call as { call?: { stream?: ServerHttp2Stream } }).call ?? {};
  if (stream?.headersSent) {
    stream.once('wantTrailers', () => stream.sendTrailers({}));
    stream.end();
  } else {
    stream?.respond({ ':status': 200, 'content-type': 'application/grpc' }, { endStream: true });
  }
}

import { createServer, type Socket, connect as toServer } from 'node:net';
import { onTestFinished } from 'vitest';

/** Cuts a connection instead of passing the question or the answer of a COMMIT on. */
export interface LossyProxy {
  port: number;
  /** Connections that were cut before the server heard of the COMMIT, and after it had committed. */
  cuts: { before: number; after: number };
}

/** Between a client and a Postgres. `cut` is asked at each COMMIT and at each answer to one. */
export async function lossyProxy(
  target: { host: string; port: number },
  cut: (when: 'before' | 'after') => boolean,
): Promise<LossyProxy> {
  const cuts = { before: 0, after: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = toServer(target);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    const pass = (to: Socket, when: 'before' | 'after', mark: string) => (chunk: Buffer) => {
      if (chunk.includes(mark) && cut(when)) {
        cuts[when]++;
        end();
      } else to.write(chunk);
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', end).on('close', end);
    }
    // A simple query, and the tag of its completion.
    client.on('data', pass(upstream, 'before', 'commit\0'));
    upstream.on('data', pass(client, 'after', 'COMMIT\0'));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as { port: number }).port, cuts };
}

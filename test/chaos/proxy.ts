import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy in front of a server, to be asked for the faults of a network. */
export interface FaultyProxy {
  readonly port: number;
  /** Resets every connection; new ones are taken. */
  cut(): void;
  /** Passes nothing on, in either direction, and keeps every connection open. */
  stall(): void;
  /** Resets every connection and takes none. */
  refuse(): void;
  /** Ends `stall` and `refuse`. */
  heal(): void;
  close(): Promise<void>;
}

/** `breaks` is asked for each chunk that comes: true resets that connection instead of passing it on. */
export async function startProxy(
  target: { host: string; port: number },
  breaks: (chunk: Buffer, from: 'client' | 'server') => boolean = () => false,
): Promise<FaultyProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let state: 'passing' | 'stalled' | 'refusing' = 'passing';
  const server = createServer((client) => {
    if (state === 'refusing') {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [upstream, client] as const]) {
      from.on('error', () => to.destroy());
      from.once('close', () => {
        to.destroy();
        pairs.delete(pair);
      });
      from.on('data', (chunk) => {
        if (breaks(chunk, from === client ? 'client' : 'server')) reset(pair);
        else if (!to.write(chunk)) from.pause();
      });
      from.on('end', () => to.end());
      to.on('drain', () => {
        if (state === 'passing') from.resume();
      });
    }
    if (state === 'stalled') for (const socket of pair) socket.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const each = (work: (socket: Socket) => void) => {
    for (const pair of pairs) for (const socket of pair) work(socket);
  };
  const cut = () => {
    for (const pair of pairs) reset(pair);
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    stall() {
      state = 'stalled';
      each((socket) => socket.pause());
    },
    refuse() {
      state = 'refusing';
      cut();
    },
    heal() {
      state = 'passing';
      each((socket) => socket.resume());
    },
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}

function reset([client, upstream]: readonly [Socket, Socket]): void {
  client.resetAndDestroy();
  upstream.destroy();
}

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { asUrutauError, type ErrorCode } from '@urutau/contract';
import type { Log } from './log.ts';

export interface Answer {
  status: number;
  /** A string is sent as it is and needs a `type`; anything else as JSON. */
  body: unknown;
  type?: string;
  headers?: Readonly<Record<string, string>>;
}

/** A small HTTP server, not yet listening: time-outs set, every error as `{code, message, remedy}`, and no request ends the host. */
export function createHttpServer(answer: (request: IncomingMessage) => Answer | Promise<Answer>, log: Log): Server {
  const server = createServer(
    {
      headersTimeout: 5_000,
      requestTimeout: 10_000,
      keepAliveTimeout: 30_000,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: 8_192,
    },
    async (request, response) => {
      const { status, headers, text } = await spelledAnswer(request, answer, log);
      response.writeHead(status, headers);
      response.end(text);
    },
  );
  server.maxConnections = 100;
  // A connection that cannot be accepted, for want of file descriptors, must not end the host.
  server.on('listening', () =>
    server.on('error', ({ message }) => log.warn('a server has trouble', { problem: message })),
  );
  return server;
}

/** Ends it at once: open requests are cut. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function spelledAnswer(
  request: IncomingMessage,
  answer: (request: IncomingMessage) => Answer | Promise<Answer>,
  log: Log,
): Promise<SpelledAnswer> {
  try {
    return spelled(await answer(request));
  } catch (error) {
    const { code, message, remedy } = asUrutauError(error);
    const status = statusOf(code);
    if (status === 500) log.error('a request failed', { path: request.url, code, problem: message });
    return spelled({ status, body: { code, message, remedy } });
  }
}

interface SpelledAnswer {
  status: number;
  headers: Record<string, string>;
  text: string;
}

function spelled({ status, body, type = 'application/json', headers = {} }: Answer): SpelledAnswer {
  return {
    status,
    headers: { 'content-type': type, 'cache-control': 'no-store', ...headers },
    text: typeof body === 'string' ? body : `${JSON.stringify(body)}\n`,
  };
}

function statusOf(code: ErrorCode): number {
  switch (code) {
    case 'config-invalid':
      return 400;
    case 'table-not-found':
      return 404;
    case 'precondition-failed':
      return 409;
    default:
      return 500;
  }
}

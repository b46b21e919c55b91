import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { ERRORS, type ErrorCode, UrutauError } from '@urutau/contract';
import { fitsASocket, socketBehind } from './socket-path.ts';

/** Nothing listens on the control socket. */
export class NoHostRunning extends UrutauError {
  constructor(path: string) {
    super('precondition-failed', `no host is running here: nothing listens on ${path}`, {
      remedy: 'Start it with `urutau-host run`, or name its --state-dir if it has another one.',
    });
  }
}

export interface Call {
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
  /** None for what waits for a commit. */
  timeoutMs?: number;
}

/**
 * One request to the host behind the control socket `path`; the JSON that it answers. Rejects with NoHostRunning, with
 * the host's own error, or with one that says how the host failed to answer.
 */
export async function call(path: string, what: Call): Promise<unknown> {
  const socketPath = await socketBehind(path);
  if (!fitsASocket(socketPath)) throw new NoHostRunning(path); // A host would have put a link here.
  const { status, body } = await exchange(socketPath, what).catch((error) => {
    throw explained(error, path);
  });
  const value = parsed(body);
  if (status === 200 && value !== undefined) return value;
  throw errorOf(value) ?? strange(`it answers ${status} to ${what.method} ${what.path}`);
}

function exchange(
  socketPath: string,
  { method, path, body, timeoutMs = 0 }: Call,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? '' : JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) };
    const call = request({ socketPath, method, path, headers, agent: false, timeout: timeoutMs });
    call.on('timeout', () => call.destroy(new Silent(timeoutMs)));
    call.on('error', reject);
    call.on('response', (response: IncomingMessage) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    call.end(sent);
  });
}

class Silent extends Error {
  constructor(ms: number) {
    super(`the host did not answer within ${ms / 1_000} s`);
  }
}

function explained(error: NodeJS.ErrnoException, path: string): UrutauError {
  switch (error.code) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ECONNREFUSED':
      return new NoHostRunning(path);
    case 'EACCES':
    case 'EPERM':
      return new UrutauError('config-invalid', `the control socket ${path} belongs to another user`, {
        cause: error,
        remedy: 'Run this as the user who runs the host.',
      });
    default:
      return new UrutauError(
        'internal',
        error instanceof Silent ? error.message : `the host ended before it answered: ${error.message}`,
        { cause: error, remedy: 'See its log; then try again.' },
      );
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function errorOf(value: unknown): UrutauError | null {
  const { code, message, remedy } = (value ?? {}) as { code?: unknown; message?: unknown; remedy?: unknown };
  if (typeof code !== 'string' || !Object.hasOwn(ERRORS, code) || typeof message !== 'string') return null;
  return new UrutauError(code as ErrorCode, message, typeof remedy === 'string' ? { remedy } : {});
}

function strange(what: string): UrutauError {
  return new UrutauError('internal', `the host behind the control socket is not understood: ${what}`, {
    remedy: 'Use the version of urutau-host that runs.',
  });
}

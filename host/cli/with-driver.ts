import { ACTION, UrutauError } from '@urutau/contract';
import { FlightClient } from '../flight/client.ts';
import { type Supervised, supervise } from './supervise.ts';

/** Starts a driver for the length of one conversation. */
export type WithDriver = <Answer>(ask: (client: FlightClient) => Promise<Answer>) => Promise<Answer>;

/** Starts a driver for a few questions and ends it, whatever comes of them. A start that fails is not tried again. */
export function withDriver(supervised: Supervised, signal: AbortSignal): WithDriver {
  return async (ask) => {
    const { role, settings } = supervised;
    let client: FlightClient | null = null;
    // biome-ignore lint/suspicious/noThenProperty: the field of the pipeline file has this name.
    const breaker = { ...settings.breaker, failures: 1, then: 'exit' } as const;
    const supervisor = supervise({ ...supervised, settings: { ...settings, breaker } }, async (...where) => {
      const connected = await FlightClient.connect(role, ...where);
      client = connected;
      return {
        heartbeat: (signal) => connected.heartbeat(signal),
        shutdown: async (signal) => void (await connected.actionBytes(ACTION.shutdown, undefined, { signal })),
        close: () => connected.close(),
      };
    });
    supervisor.start();
    try {
      const { diedSignal } = await supervisor.ready(signal).catch((error) => {
        throw withoutBreaker(error);
      });
      return await unlessAborted(ask(client!), AbortSignal.any([signal, diedSignal]));
    } finally {
      await supervisor.stop();
    }
  };
}

/** That it failed "1 times" says nothing; the failure itself is the cause. */
function withoutBreaker(error: unknown): unknown {
  return error instanceof UrutauError && error.cause instanceof UrutauError ? error.cause : error;
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  return Promise.race([promise, aborted]);
}

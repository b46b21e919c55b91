import { ACTION, type DescribeAnswer, EXTENSION } from '@urutau/contract';
import CircuitBreaker from 'opossum';
import type { FlightClient } from '../flight/client.ts';
import type { Log } from './log.ts';
import { maskedExposition } from './masked-exposition.ts';

/** What is used of a driver's client. */
export type MetricsClient = Pick<FlightClient, 'role' | 'mask' | 'listActions' | 'action' | 'actionBytes'>;

export interface DriverMetricsOptions {
  clients: () => readonly MetricsClient[];
  log: Log;
  /** For one driver to answer; a scrape waits no longer. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 1_000;
/** After a failure, a driver is not asked for so long. */
const REST_MS = 30_000;
const TEXT_BYTES_MAX = 1_048_576;

/** Asks the living drivers that announce `metrics/1` for theirs. One that does not answer is left out and left alone for a while. */
export class DriverMetrics {
  readonly #options: DriverMetricsOptions;
  readonly #breakers = new Map<MetricsClient, CircuitBreaker<[], string | null>>();

  constructor(options: DriverMetricsOptions) {
    this.#options = options;
  }

  /** Never rejects, and takes no longer than the time-out. */
  async texts(): Promise<{ role: 'source' | 'sink'; text: string }[]> {
    // The newest of each role: while a driver is replaced, the old client may still be there.
    const clients = [...new Map(this.#options.clients().map((client) => [client.role, client])).values()];
    this.#forgetAllBut(clients);
    const answers = await Promise.all(
      clients.map(async (client) => ({
        role: client.role,
        text: await this.#breakerOf(client)
          .fire()
          .catch(() => null),
      })),
    );
    return answers.flatMap(({ role, text }) => (text === null ? [] : [{ role, text }]));
  }

  close(): void {
    this.#forgetAllBut([]);
  }

  #breakerOf(client: MetricsClient): CircuitBreaker<[], string | null> {
    const present = this.#breakers.get(client);
    if (present) return present;
    const { log, timeoutMs = TIMEOUT_MS } = this.#options;
    const breaker = new CircuitBreaker(asker(client, timeoutMs), {
      timeout: timeoutMs,
      resetTimeout: REST_MS,
      errorThresholdPercentage: 1,
    });
    breaker.on('failure', ({ message }) =>
      log.warn('metrics of a driver are left out', { role: client.role, problem: message, forMs: REST_MS }),
    );
    this.#breakers.set(client, breaker);
    return breaker;
  }

  #forgetAllBut(clients: readonly MetricsClient[]): void {
    for (const [client, breaker] of this.#breakers) {
      if (clients.includes(client)) continue;
      breaker.shutdown();
      this.#breakers.delete(client);
    }
  }
}

/** Null when the driver has no metrics. What it announces is asked once: it cannot change within a process. */
function asker(client: MetricsClient, timeoutMs: number): () => Promise<string | null> {
  let announces: boolean | null = null;
  return async () => {
    announces ??= await announcesMetrics(client, timeoutMs);
    if (!announces) return null;
    const bytes = await client.actionBytes(ACTION.metrics, undefined, { timeoutMs });
    if (bytes.length > TEXT_BYTES_MAX) {
      throw new Error(`expected at most ${TEXT_BYTES_MAX} bytes of metrics; came ${bytes.length}`);
    }
    return maskedExposition(Buffer.from(bytes).toString(), client.mask);
  };
}

async function announcesMetrics(client: MetricsClient, timeoutMs: number): Promise<boolean> {
  if (!(await client.listActions()).includes(ACTION.describe)) return false;
  const { extensions } = await client.action<DescribeAnswer>(ACTION.describe, undefined, { timeoutMs });
  return extensions.includes(EXTENSION.metrics);
}

import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { PiecewiseMessage, UrutauError } from '@urutau/contract';
import { fromServiceError } from './service-error.ts';

/** Messages handed to the transport and not yet taken by it. */
const WRITES_IN_FLIGHT_MAX = 2;

/** One DoPut. `write` resolves when the transport has room again, so a slow sink is an `await`. */
export class WriteStream {
  readonly #call: ClientDuplexStream<PiecewiseMessage, Buffer>;
  readonly #status: Promise<void>;
  #failure: UrutauError | null = null;
  #inFlight: Promise<void>[] = [];

  constructor(call: ClientDuplexStream<PiecewiseMessage, Buffer>, table: string, released: () => void) {
    this.#call = call;
    this.#status = new Promise((resolve) => {
      call.on('error', (error) => {
        this.#failure = fromServiceError(error, 'sink', `writing ${table}`);
        resolve();
      });
      call.on('end', () => resolve());
      call.on('data', () => {}); // SNK-6: PutResults mean nothing.
    });
    this.#status.then(released);
  }

  /** The driver's answer to the stream, when it failed before its end; null while all is well. */
  get failure(): UrutauError | null {
    return this.#failure;
  }

  /** Resolves when the stream is over, in order or not; then see `failure`. */
  get over(): Promise<void> {
    return this.#status;
  }

  start(message: PiecewiseMessage): void {
    this.#send(message);
  }

  async write(message: PiecewiseMessage): Promise<void> {
    while (this.#inFlight.length >= WRITES_IN_FLIGHT_MAX) {
      await Promise.race([this.#inFlight[0], this.#status]);
      if (this.#failure) throw this.#failure;
      this.#inFlight.shift();
    }
    if (this.#failure) throw this.#failure;
    this.#send(message);
  }

  /** Half-closes and waits for the driver's status; throws what it answered. */
  async end(): Promise<void> {
    this.#call.end();
    await this.#status;
    if (this.#failure) throw this.#failure;
  }

  cancel(): void {
    this.#call.cancel();
  }

  #send(message: PiecewiseMessage): void {
    this.#inFlight.push(new Promise((resolve) => this.#call.write(message, () => resolve())));
  }
}

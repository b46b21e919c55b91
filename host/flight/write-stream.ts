import { type PiecewiseMessage, UrutauError } from '@urutau/contract';
import { type Mask, NO_MASK } from '../supervisor/mask.ts';
import type { DataCall } from './data-connection.ts';
import { failureOf } from './service-error.ts';

/** Bytes handed to the transport and not yet taken by it; a larger message goes when nothing else is on its way. */
const BYTES_IN_FLIGHT_MAX = 2 * 1024 * 1024;

/** One DoPut, written by one caller at a time. `write` resolves when the transport has room: a slow sink is an `await`. */
export class WriteStream {
  /** Resolves when the stream is over, in order or not; then see `failure`. */
  readonly over: Promise<void>;
  readonly #call: DataCall;
  #failure: UrutauError | null = null;
  #inFlight = 0;
  #ending = false;
  /** Whoever waits for room. Streams live for weeks: a promise per batch that waits for their end would pile up. */
  #wake: () => void = () => {};

  constructor(call: DataCall, table: string, mask: Mask = NO_MASK) {
    this.#call = call;
    this.over = call.status.then((status) => {
      this.#failure ??=
        failureOf(status, 'sink', `writing ${table}`, mask) ?? (this.#ending ? null : endedEarly(table));
      this.#wake();
    });
    void this.#ignoreAnswers();
  }

  /** Why the stream ended before the host ended it; null while all is well. */
  get failure(): UrutauError | null {
    return this.#failure;
  }

  start(message: PiecewiseMessage): void {
    this.#send(message);
  }

  async write(message: PiecewiseMessage): Promise<void> {
    while (this.#inFlight > 0 && this.#inFlight + message.length > BYTES_IN_FLIGHT_MAX && this.#failure === null) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure) throw this.#failure;
    this.#send(message);
  }

  /** Half-closes and waits for the driver's status; throws what it answered. */
  async end(): Promise<void> {
    this.#ending = true;
    this.#call.endWrites();
    await this.over;
    if (this.#failure) throw this.#failure;
  }

  cancel(): void {
    this.#call.cancel();
  }

  #send(message: PiecewiseMessage): void {
    this.#inFlight += message.length;
    const taken = () => {
      this.#inFlight -= message.length;
      this.#wake();
    };
    // A message that is not taken any more is told by the status of the call.
    this.#call.write(message.pieces).then(taken, taken);
  }

  /** SNK-7: PutResults mean nothing. */
  async #ignoreAnswers(): Promise<void> {
    while ((await this.#call.read()) !== null);
  }
}

/** An early end in good order is no success: what the driver has not read is lost, and a flush would not tell. */
function endedEarly(table: string): UrutauError {
  return new UrutauError('stream-lost', `the driver ended the write stream of ${table} before the host did`, { table });
}

import { randomBytes } from 'node:crypto';
import { UrutauError } from '@urutau/contract';

const TICKETS_MAX = 4096;

/** Tickets live as long as the process (INFO-5); only the oldest go when there are very many. */
export class Tickets<T> {
  readonly #held = new Map<string, { value: T; release: () => void }>();

  issue(value: T, release: () => void): Uint8Array {
    const ticket = randomBytes(16);
    this.#held.set(ticket.toString('hex'), { value, release });
    if (this.#held.size > TICKETS_MAX) {
      const [oldest] = this.#held.keys();
      this.#drop(oldest!);
    }
    return ticket;
  }

  use(ticket: Uint8Array): T {
    const held = this.#held.get(Buffer.from(ticket).toString('hex'));
    if (held === undefined) {
      throw new UrutauError('table-not-found', 'this ticket is not of this process', {
        remedy: 'Ask for a new ticket with GetFlightInfo; tickets end with the process that issued them (INFO-5).',
      });
    }
    return held.value;
  }

  /** False when the ticket is not known. */
  release(ticket: Uint8Array): boolean {
    return this.#drop(Buffer.from(ticket).toString('hex'));
  }

  #drop(key: string): boolean {
    this.#held.get(key)?.release();
    return this.#held.delete(key);
  }
}

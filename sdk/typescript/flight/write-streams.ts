import { type ErrorCode, LIMIT, UrutauError, type WriteDescriptor } from '@urutau/contract';
import type { TableWriter } from '../define.ts';

/** One write stream of a table as the ledger sees it. */
export interface LedgerStream {
  readonly number: number;
  readonly writer: TableWriter;
  /** Called for each message before the writer sees it; throws `stale-stream` when a newer stream has taken over. */
  accept(): void;
  /** The writer has taken the batch `seq`. */
  received(seq: number): void;
  /** The stream ended in order: what it brought may still be committed. */
  ended(): void;
  /** The stream broke: what no commit has covered is forgotten, and a commit that waits for it gets the reason. */
  broke(reason: unknown): Promise<void>;
}

interface Entry {
  number: number;
  writer: TableWriter;
  received: number;
  committed: number;
  state: 'open' | 'ended' | 'discarded';
  /** Why the writer refused a batch, where that is known. */
  refusal?: UrutauError;
}

/** What happens to streams and says nothing of their rows. */
const OF_STREAMS: readonly ErrorCode[] = ['stale-stream', 'stream-lost'];

/**
 * Knows the current write stream of each table and lets a commit wait for its rows (CMT-3, CMT-5): a stream and an
 * action are different HTTP/2 streams and may overtake each other.
 */
export class WriteStreams {
  readonly #tables = new Map<string, Entry>();
  /** Highest stream number seen per table, from DoPut or from a commit. */
  readonly #highest = new Map<string, number>();
  readonly #waiting = new Set<() => void>();

  /** Registers a stream. A lower one of the same table is discarded; an equal or higher one makes this one stale. */
  async open({ table, stream = 0 }: WriteDescriptor, makeWriter: () => Promise<TableWriter>): Promise<LedgerStream> {
    this.#raise(table, stream);
    await this.#discardBelow(table, stream);
    const writer = await makeWriter();
    if (stream < this.#highestOf(table)) {
      await writer.discard();
      throw stale(table, stream);
    }
    const entry: Entry = { number: stream, writer, received: 0, committed: 0, state: 'open' };
    this.#tables.set(table, entry);
    this.#wake();
    return {
      number: stream,
      writer,
      accept: () => {
        if (this.#tables.get(table) !== entry) throw stale(table, stream);
      },
      received: (seq) => {
        entry.received = seq;
        this.#wake();
      },
      ended: () => {
        if (entry.state === 'open') entry.state = 'ended';
        this.#wake();
      },
      broke: (reason) => {
        if (reason instanceof UrutauError && !OF_STREAMS.includes(reason.code)) entry.refusal = reason;
        return this.#discard(entry);
      },
    };
  }

  /** A commit names its stream: everything uncommitted of lower ones is discarded, a lower commit is stale. */
  async raise(table: string, stream: number): Promise<void> {
    this.#raise(table, stream);
    if ((this.#tables.get(table)?.number ?? stream) < stream) await this.#discardBelow(table, stream);
  }

  /**
   * Resolves when the stream's writer has taken everything through `seq`, or a commit has covered it already;
   * `stream-lost` when it never will, or the refusal of the writer that broke the stream.
   */
  async waitFor(table: string, stream: number, seq: number): Promise<void> {
    if (seq === 0) return;
    const openBy = new AbortController();
    const timer = setTimeout(() => openBy.abort(), LIMIT.streamOpenMs);
    try {
      for (;;) {
        if (stream < this.#highestOf(table)) throw stale(table, stream);
        const entry = this.#tables.get(table);
        if (entry && entry.number === stream) {
          if (entry.received >= seq) return;
          if (entry.state !== 'open') {
            throw entry.refusal ?? lost(table, stream, seq, `it ended at batch ${entry.received}`);
          }
          await this.#change();
        } else {
          if (openBy.signal.aborted) {
            throw lost(table, stream, seq, `it was not opened within ${LIMIT.streamOpenMs / 1000} s`);
          }
          await this.#change(openBy.signal);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** A commit has made everything through `seq` durable: that much outlives the stream. */
  committed(table: string, stream: number, seq: number): void {
    const entry = this.#tables.get(table);
    if (entry?.number !== stream) return;
    entry.committed = Math.max(entry.committed, seq);
    entry.received = Math.max(entry.received, seq);
  }

  #highestOf(table: string): number {
    return this.#highest.get(table) ?? 0;
  }

  #raise(table: string, stream: number): void {
    if (stream < this.#highestOf(table)) throw stale(table, stream);
    this.#highest.set(table, stream);
  }

  /** A stream of the same number that ended in order has nothing to lose to its successor: those are of base hosts. */
  async #discardBelow(table: string, stream: number): Promise<void> {
    const older = this.#tables.get(table);
    if (older === undefined) return;
    this.#tables.delete(table);
    if (older.number < stream || older.state === 'open') await this.#discard(older);
  }

  async #discard(entry: Entry): Promise<void> {
    if (entry.state === 'discarded') return;
    entry.state = 'discarded';
    // The writer forgets these rows now, so no commit may claim them any more.
    entry.received = entry.committed;
    this.#wake();
    await entry.writer.discard();
  }

  #change(deadline?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        deadline?.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      deadline?.addEventListener('abort', done, { once: true });
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

function stale(table: string, stream: number): UrutauError {
  return new UrutauError('stale-stream', `write stream ${stream} of ${table} was replaced by a newer one`, {
    table,
    stream,
  });
}

function lost(table: string, stream: number, seq: number, why: string): UrutauError {
  return new UrutauError('stream-lost', `write stream ${stream} of ${table} never brought batch ${seq}: ${why}`, {
    table,
    stream,
    seq,
  });
}

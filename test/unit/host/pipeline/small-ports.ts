import type { AssignRequest, Envelope, UrutauError } from '@urutau/contract';
import type { Batch } from '../../../../host/pipeline/batch.ts';
import type { SinkPort, TableSink } from '../../../../host/pipeline/sink/port.ts';
import type { ChangesFeed, SnapshotFeed, SourcePort } from '../../../../host/pipeline/source/port.ts';
import { rows } from './served-sink.ts';
import { SHAPE } from './shape.ts';

/** What a feed has to give: a batch, or its end. */
type Item = Batch | 'end' | Error;

/** A source in memory. Offsets are base64 of one byte, in byte order; the test gives each table's feeds their items. */
export class SmallSource {
  readonly assigned: AssignRequest['tables'][] = [];
  readonly opened: string[] = [];
  readonly open = new Set<string>();
  /** Runs while `assign` is under way; what it throws is the answer. */
  whileAssigning: (request: AssignRequest) => Promise<void> | void = () => {};
  head = offset(0);
  shape = SHAPE;
  isBase = false;
  readonly #queues = new Map<string, { items: Item[]; wake: () => void }>();

  /** To `changes:orders` or `snapshot:orders`. */
  give(feed: string, ...items: Item[]): void {
    const queue = this.#queue(feed);
    queue.items.push(...items);
    queue.wake();
  }

  get port(): SourcePort {
    return this.#within(new AbortController().signal);
  }

  #within(signal: AbortSignal): SourcePort {
    return {
      within: (other) => this.#within(other),
      name: 'small',
      streamsMax: null,
      capabilities: {},
      assign: this.isBase
        ? null
        : async (request) => {
            this.assigned.push(request.tables);
            await this.whileAssigning(request);
            const starts = request.tables.map(({ table, fromOffset = offset(0) }) => [table, { start: fromOffset }]);
            return { source: 'small:1', tables: Object.fromEntries(starts) };
          },
      chunks: null,
      changes: async (table) => ({ ...this.#feed(`changes:${table}`, signal), stream: table }) satisfies ChangesFeed,
      snapshot: async (table) =>
        ({ ...this.#feed(`snapshot:${table}`, signal), endOffset: offset(0) }) satisfies SnapshotFeed,
      confirm: null,
      progress: this.isBase ? null : { head: async () => this.head, of: async () => ({}) },
      compare: async (a, b) =>
        Math.sign(Buffer.compare(Buffer.from(a, 'base64'), Buffer.from(b, 'base64'))) as -1 | 0 | 1,
      lag: async () => ({}),
    };
  }

  #feed(name: string, signal: AbortSignal) {
    this.opened.push(name);
    this.open.add(name);
    const queue = this.#queue(name);
    return {
      shape: this.shape,
      next: async (): Promise<Batch | null> => {
        for (;;) {
          signal.throwIfAborted();
          const item = queue.items.shift();
          if (item === 'end') return null;
          if (item instanceof Error) throw item;
          if (item) return item;
          await new Promise<void>((resolve) => {
            queue.wake = resolve;
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
        }
      },
      close: () => void this.open.delete(name),
    };
  }

  #queue(name: string) {
    const queue = this.#queues.get(name) ?? { items: [], wake: () => {} };
    this.#queues.set(name, queue);
    return queue;
  }
}

/** A sink in memory that holds the last checkpoint of each table. */
export class SmallSink {
  readonly stored = new Map<string, string | UrutauError>();
  readonly commits: { table: string; rows: number }[] = [];
  /** Runs before a commit is stored; what it throws is the answer. `number` counts the table's commits from 0. */
  whileCommitting: (table: string, number: number) => Promise<void> | void = () => {};
  truncate = true;
  positions: SinkPort['positions'] = 'sink';

  get port(): SinkPort {
    return {
      name: 'small',
      streamsMax: null,
      takesEvents: true,
      capabilities: { truncate: this.truncate },
      positions: this.positions,
      ensure: null,
      checkpoints: async (tables) => new Map(tables.map((table) => [table, this.stored.get(table) ?? null])),
      open: (table) => this.#open(table),
    };
  }

  #open(table: string): TableSink {
    let written = 0;
    let number = 0;
    return {
      onFailure: () => {},
      seq: 0,
      write: async ({ envelope }) => {
        written += envelope.rows;
      },
      commit: async (checkpoint) => {
        const count = written;
        written = 0;
        await this.whileCommitting(table, number++);
        this.stored.set(table, checkpoint);
        this.commits.push({ table, rows: count });
      },
      close: () => {},
    };
  }
}

export function offset(byte: number): string {
  return Buffer.of(byte).toString('base64');
}

/** A batch of changes after which the table's position is `byte`. */
export function changes(count: number, byte: number): Batch {
  return withEnvelope({ offset: offset(byte), phase: 'stream' }, count);
}

export function pictureOf(count: number): Batch {
  return withEnvelope({ phase: 'snapshot' }, count);
}

function withEnvelope(more: Partial<Envelope>, count: number): Batch {
  const batch = rows(count);
  return { ...batch, envelope: { ...batch.envelope, ...more } };
}

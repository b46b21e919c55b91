import { asUrutauError, type TableShape, UrutauError } from '@urutau/contract';
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import { faultPoint } from '../../fault-point.ts';
import type { Batch } from '../batch.ts';
import type { CheckpointedStream, Position, TableStream } from '../checkpointed-stream.ts';
import { type Refusal, type RefusedRow, refusedRows } from '../refusal.ts';
import { type DeadLetter, firstOrdinal } from './dead-letter.ts';
import { type Diverted, divert, keysOfRow } from './divert.ts';
import type { QuarantinedKeys } from './quarantined-keys.ts';

export interface QuarantiningStreamOptions {
  pipeline: string;
  /** Of the host. */
  run: string;
  /** As the source names it. */
  table: string;
  target: string;
  shape: TableShape;
  /** Opens a write stream that goes on from the checkpoint text `stored`. */
  open: (number: number, stored: string | null) => CheckpointedStream;
  first: { number: number; stored: string | null };
  /** Where the table is, and the keys that are quarantined there. */
  position: Position;
  keys: QuarantinedKeys;
  /** Whether a row that is refused is set aside; otherwise only the changes of the keys at hand are. */
  takesRefusals: boolean;
  /** Makes dead letters durable. */
  store: (letters: readonly DeadLetter[]) => Promise<void>;
  /** The changes that a commit has set aside. */
  quarantined: (letters: readonly SetAside[]) => void;
  /** A truncate that is durable has made the dead letters of the table void whose ordinals are below `before`. */
  voided: (before: bigint) => void;
  wallMs: () => number;
}

/** What is told of a dead letter. */
export type SetAside = Pick<DeadLetter, 'key' | 'op' | 'code' | 'reason'>;

type Entry =
  | { kind: 'batch'; batch: Batch; taken: Deferred<void> }
  | { kind: 'commit'; position: Position; done: Deferred<Checkpoint> };

/** Dead letters wait for the table's commit only up to here. */
const LETTERS_BYTES_MAX = 8 * 1024 * 1024;

/**
 * The write stream of a table with `onPoison: quarantine`. It keeps the batches that no commit has covered. When the sink
 * refuses a row its key joins the quarantined keys: they are stored, at the position that is durable, by the commit that
 * raises the next write stream; the batches are written once more, now without the changes of these keys. Those are
 * durable in the dead letters before any commit of the table covers them. Whatever ends in between is done again from
 * the checkpoint with the same outcome, so a repeat is harmless and no dead letter ever stands for a row that passed.
 */
export class QuarantiningStream implements TableStream {
  onFailure: (error: UrutauError) => void = () => {};
  readonly #options: QuarantiningStreamOptions;
  /** Not covered by a commit that was answered, oldest first. */
  #entries: Entry[] = [];
  /** Number of the first entry, over the life of the stream. */
  #first = 0;
  #durable: { position: Position; keys: QuarantinedKeys };
  /** What the sink said of rows of the entries: by the entry's number, then by the batch's row. */
  readonly #refusals = new Map<number, Map<number, Refusal>>();
  #attempt: Attempt;
  #failure: UrutauError | null = null;
  #closed = false;
  #wake: () => void = () => {};

  constructor(options: QuarantiningStreamOptions) {
    this.#options = options;
    this.#durable = { position: options.position, keys: options.keys.copy() };
    this.#attempt = this.#begin(options.open(options.first.number, options.first.stored));
    void this.#run();
  }

  write(batch: Batch): Promise<void> {
    const taken = new Deferred<void>();
    this.#add({ kind: 'batch', batch, taken }, taken);
    return taken.promise;
  }

  commit(position: Position): Promise<Checkpoint> {
    const done = new Deferred<Checkpoint>();
    this.#add({ kind: 'commit', position, done }, done);
    return done.promise;
  }

  close(): void {
    this.#closed = true;
    this.#attempt.stream.close();
    this.#attempt.breaks(this.#failure ?? closed(this.#options.table));
    this.#rejectAll(this.#failure ?? closed(this.#options.table));
  }

  #add(entry: Entry, answer: { reject(error: unknown): void }): void {
    if (this.#failure || this.#closed) {
      answer.reject(this.#failure ?? closed(this.#options.table));
      return;
    }
    this.#entries.push(entry);
    this.#wake();
  }

  /** Never throws: what it cannot go on after is told by `onFailure`. */
  async #run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#carry(this.#attempt);
      } catch (error) {
        if (this.#closed) return;
        try {
          await this.#writeOnceMore(asUrutauError(error, 'sink-unavailable', { table: this.#options.target }));
        } catch (fatal) {
          return this.#fail(asUrutauError(fatal, 'sink-unavailable', { table: this.#options.target }));
        }
      }
    }
  }

  /** Takes one entry after the other, until the write stream breaks. */
  async #carry(attempt: Attempt): Promise<void> {
    for (;;) {
      const entry = this.#entries[attempt.next - this.#first];
      if (entry === undefined) await attempt.orBroken(this.#nextEntry());
      else if (entry.kind === 'batch') await this.#writeEntry(attempt, entry);
      else await this.#commitEntry(attempt, entry);
    }
  }

  async #writeEntry(attempt: Attempt, { batch, taken }: Entry & { kind: 'batch' }): Promise<void> {
    const number = attempt.next;
    if (batch.envelope.event?.kind === 'truncate') this.#truncate(attempt, number);
    const { passed, rows, letters } = this.#divert(attempt, batch, number);
    attempt.letters.push(...letters);
    attempt.letterBytes += letters.reduce((sum, { change }) => sum + change.length, 0);
    if (attempt.letterBytes > LETTERS_BYTES_MAX) await this.#storeLetters(attempt);
    if (passed !== null) {
      const written = attempt.stream.write(passed);
      attempt.sent.set(attempt.stream.seq, { number, rows });
      await attempt.orBroken(written);
    }
    attempt.next++;
    taken.resolve();
  }

  #divert(attempt: Attempt, batch: Batch, number: number): Diverted {
    const { pipeline, run, table, target, shape, wallMs } = this.#options;
    return divert(batch, {
      pipeline,
      run,
      table,
      target,
      shape,
      keys: attempt.keys,
      nextOrdinal: () => attempt.nextOrdinal(),
      refusalOf: (row) => this.#refusals.get(number)?.get(row) ?? null,
      wallMs,
    });
  }

  /** All that was set aside before it is void; a row that is refused after it is set aside anew. */
  #truncate(attempt: Attempt, number: number): void {
    if (attempt.keys.size === 0) return;
    attempt.keys.clear();
    const ordinal = attempt.nextOrdinal();
    attempt.voidBefore = ordinal;
    for (const [later, rows] of this.#refusals) if (later > number) this.#join(attempt.keys, later, rows, ordinal);
  }

  async #commitEntry(attempt: Attempt, { position, done }: Entry & { kind: 'commit' }): Promise<void> {
    await this.#storeLetters(attempt);
    const keys = attempt.keys.copy();
    const through = attempt.next++;
    const { told, voidBefore } = attempt;
    attempt.told = [];
    attempt.voidBefore = null;
    attempt.committing = attempt.stream.commit(position, keys.stored()).then(
      (checkpoint) => {
        if (attempt !== this.#attempt || this.#closed) return;
        this.#durable = { position, keys };
        this.#forget(through);
        if (told.length > 0) this.#options.quarantined(told);
        if (voidBefore !== null) this.#options.voided(voidBefore);
        done.resolve(checkpoint);
      },
      (error) => attempt.breaks(error),
    );
  }

  async #storeLetters(attempt: Attempt): Promise<void> {
    const letters = attempt.letters.splice(0);
    attempt.letterBytes = 0;
    if (letters.length === 0) return;
    await this.#options.store(letters);
    // Another write stream may be open by now, to which nothing that this one would do is welcome.
    if (this.#closed) throw closed(this.#options.table);
    faultPoint('host.letters.stored');
    attempt.told.push(...letters.map(({ key, op, code, reason }) => ({ key, op, code, reason })));
  }

  #forget(through: number): void {
    this.#entries.splice(0, through + 1 - this.#first);
    this.#first = through + 1;
    for (const number of this.#refusals.keys()) if (number <= through) this.#refusals.delete(number);
    for (const [seq, { number }] of this.#attempt.sent) if (number <= through) this.#attempt.sent.delete(seq);
  }

  /** After a refusal: the key joins the others, in a commit of its own, before the first dead letter of it. */
  async #writeOnceMore(error: UrutauError): Promise<void> {
    const old = this.#attempt;
    // It may yet land, and then the next write stream begins behind it.
    await old.committing;
    if (this.#closed) throw error;
    this.#noteRefusal(old, error);
    old.stream.close();
    this.#attempt = this.#begin(this.#options.open(old.stream.number + 1, old.stream.stored));
    const { stream, keys } = this.#attempt;
    await this.#attempt.orBroken(stream.commit(this.#durable.position, keys.stored()));
    faultPoint('host.keys.quarantined');
    this.#durable = { ...this.#durable, keys: keys.copy() };
  }

  /** Throws the error itself where it does not say which row of ours was refused. */
  #noteRefusal(attempt: Attempt, error: UrutauError): void {
    const { stream } = error.context;
    const isOurs = stream === undefined || stream === attempt.stream.number;
    const rows = isOurs && this.#options.takesRefusals ? refusedRows(error) : [];
    if (rows.filter((row) => this.#note(attempt, row)).length === 0) throw error;
  }

  /** False for a row that is not ours, or was set aside and is refused all the same: that would never end. */
  #note(attempt: Attempt, { seq, row, ...refusal }: RefusedRow): boolean {
    const sent = attempt.sent.get(seq ?? -1);
    const own = row === undefined ? undefined : sent?.rows === null ? row : sent?.rows[row];
    if (sent === undefined || own === undefined) return false;
    const rows = this.#refusals.get(sent.number) ?? new Map<number, Refusal>();
    if (rows.has(own)) return false;
    rows.set(own, refusal);
    this.#refusals.set(sent.number, rows);
    return true;
  }

  #begin(stream: CheckpointedStream): Attempt {
    const keys = this.#durable.keys.copy();
    const attempt = new Attempt(stream, keys, this.#first);
    stream.onFailure = (error) => attempt.breaks(error);
    const since = attempt.nextOrdinal();
    for (const [number, rows] of this.#refusals) this.#join(keys, number, rows, since);
    return attempt;
  }

  #join(keys: QuarantinedKeys, number: number, rows: ReadonlyMap<number, Refusal>, since: bigint): void {
    const entry = this.#entries[number - this.#first];
    if (entry?.kind !== 'batch') return;
    const { shape, table, run } = this.#options;
    for (const [row, { reason }] of rows) {
      for (const key of keysOfRow(entry.batch, shape, row)) keys.add(key, { since, run, table, why: reason });
    }
  }

  #nextEntry(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #fail(error: UrutauError): void {
    this.#failure = error;
    this.#attempt.stream.close();
    this.#rejectAll(error);
    this.onFailure(error);
  }

  #rejectAll(error: UrutauError): void {
    for (const entry of this.#entries.splice(0)) (entry.kind === 'batch' ? entry.taken : entry.done).reject(error);
  }
}

/** One write stream, and how far it has come with the entries. */
class Attempt {
  readonly stream: CheckpointedStream;
  readonly keys: QuarantinedKeys;
  /** Number of the entry to take next. */
  next: number;
  /** Of the uncommitted messages by the sink's number: their entry, and which of its rows they hold; null for all. */
  readonly sent = new Map<number, { number: number; rows: readonly number[] | null }>();
  /** Not durable yet. */
  readonly letters: DeadLetter[] = [];
  letterBytes = 0;
  /** Durable, and to be told with the commit that covers them. */
  told: SetAside[] = [];
  /** Ordinal of the last truncate since the last commit. */
  voidBefore: bigint | null = null;
  /** The commit that runs, whatever comes of it. */
  committing: Promise<void> = Promise.resolve();
  #breakage: { error: unknown } | null = null;
  /** Streams live for weeks: a promise per batch that waits for their end would pile up. */
  #breaksUp: (error: unknown) => void = () => {};
  #letters = 0n;

  constructor(stream: CheckpointedStream, keys: QuarantinedKeys, next: number) {
    this.stream = stream;
    this.keys = keys;
    this.next = next;
  }

  /** What `work` answers, or the reason for which the write stream broke or its commit failed. One call at a time. */
  orBroken<T>(work: Promise<T>): Promise<T> {
    if (this.#breakage) {
      work.catch(() => {});
      return Promise.reject(this.#breakage.error);
    }
    return new Promise((resolve, reject) => {
      this.#breaksUp = reject;
      work.then(resolve, reject);
    });
  }

  breaks(error: unknown): void {
    this.#breakage ??= { error };
    this.#breaksUp(this.#breakage.error);
  }

  nextOrdinal(): bigint {
    return firstOrdinal(this.stream.number) + this.#letters++;
  }
}

class Deferred<T> {
  resolve!: (value: T) => void;
  reject!: (error: unknown) => void;
  readonly promise: Promise<T>;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {}); // Whoever waits is told.
  }
}

function closed(table: string): UrutauError {
  return new UrutauError('stream-lost', `the write stream of ${table} was closed`, { table });
}

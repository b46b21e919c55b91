import { asUrutauError, encodeSchema, rowSchema, UrutauError } from '@urutau/contract';
import { decodeCheckpoint } from '../../checkpoint/checkpoint.ts';
import type { Batch } from '../batch.ts';
import { CheckpointedStream } from '../checkpointed-stream.ts';
import { isRefusal } from '../refusal.ts';
import type { SinkPort } from '../sink/port.ts';
import { superseded } from '../superseded.ts';
import { DEAD_LETTER_SHAPE, type DeadLetter, type LetterId, lettersBatch, lettersGoneBatch } from './dead-letter.ts';

export interface DeadLetterBoxOptions {
  sink: SinkPort;
  /** Its full name in the destination. */
  target: string;
  /** The pipeline. */
  writer: string;
  run: string;
  claim: LettersClaim;
}

/** What the boxes of one run of the host have in common: there is one for each sink process. */
export interface LettersClaim {
  /** This run has written dead letters: whoever does so now has replaced it. */
  isMade: boolean;
}

/** So many go into one batch, and so many bytes; one that is larger goes alone. */
const LETTERS_MAX = 10_000;
const BATCH_BYTES = 4 * 1024 * 1024;
/** After so many bytes a commit follows, long before the sink would have to be asked for more room. */
const COMMIT_BYTES = 32 * 1024 * 1024;
const AT_REST = { offset: null, snapshot: 'done' } as const;

/**
 * The table of dead letters in the destination, written through the very contract of any other table: with a write
 * stream and checkpoints of its own, so that of two hosts one is fenced off. One call at a time; a call that failed
 * leaves nothing open, and the next one begins from what is stored.
 */
export class DeadLetterBox {
  readonly #options: DeadLetterBoxOptions;
  #stream: CheckpointedStream | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: DeadLetterBoxOptions) {
    this.#options = options;
  }

  get target(): string {
    return this.#options.target;
  }

  /** They are durable when it resolves; those that are there already are replaced. */
  store(letters: readonly DeadLetter[]): Promise<void> {
    return this.#write(() => pieces(letters).map(lettersBatch));
  }

  /**
   * `ids` looks at what is stored, and is called only when its turn has come: nothing is stored between that look and the
   * removal, which would else take away what was stored under the same name meanwhile.
   */
  remove(ids: () => AsyncIterable<LetterId>): Promise<void> {
    return this.#write(() => goneBatches(ids()));
  }

  /**
   * Makes the table when it is not there, and fences off the host that wrote to it before. It comes before the first write
   * stream of a table is raised: a host that lost its tables must find that it lost this one too.
   */
  prepare(): Promise<void> {
    return this.#inTurn(async () => void (await this.#opened()));
  }

  close(): void {
    this.#stream?.close();
    this.#stream = null;
  }

  #write(batches: () => Iterable<Batch> | AsyncIterable<Batch>): Promise<void> {
    return this.#inTurn(() => this.#writeNow(batches()));
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(async () => {
      try {
        await work();
      } catch (error) {
        this.close();
        throw this.#explained(error);
      }
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #writeNow(batches: Iterable<Batch> | AsyncIterable<Batch>): Promise<void> {
    let stream: CheckpointedStream | null = null;
    let bytes = 0;
    for await (const batch of batches) {
      // One that breaks meanwhile has lost what was written to it, so it is not followed by another.
      stream ??= await this.#opened();
      await stream.write(batch);
      bytes += batch.bytes;
      if (bytes < COMMIT_BYTES) continue;
      await stream.commit(AT_REST);
      bytes = 0;
    }
    if (bytes > 0) await stream!.commit(AT_REST);
  }

  async #opened(): Promise<CheckpointedStream> {
    this.#stream ??= await this.#open();
    return this.#stream;
  }

  async #open(): Promise<CheckpointedStream> {
    const { sink, target, writer, run, claim } = this.#options;
    await sink.ensure?.({
      table: target,
      writer,
      schema: Buffer.from(encodeSchema(rowSchema(DEAD_LETTER_SHAPE))).toString('base64'),
      primaryKey: DEAD_LETTER_SHAPE.primaryKey,
      writeMode: 'upsert',
      createIfNotExists: true,
      evolve: false,
      check: false,
      options: {},
    });
    const stored = (await sink.checkpoints([target])).get(target) ?? null;
    if (stored instanceof UrutauError) throw stored;
    const checkpoint = stored === null ? null : decodeCheckpoint(stored, target);
    // Another host has taken over meanwhile, and what it has is not taken back.
    if (claim.isMade && checkpoint && checkpoint.run !== run) throw superseded(target, checkpoint.writer);
    const number = (checkpoint?.stream ?? 0) + 1;
    const stream = new CheckpointedStream({
      table: target,
      sink: sink.open(target, number, DEAD_LETTER_SHAPE),
      identity: { v: 1, writer, run, source: '', stream: number, schemaId: null, shape: 'dead letters' },
      stored,
    });
    // A stream that breaks is told to the next call; nobody waits for it meanwhile.
    stream.onFailure = () => {
      if (this.#stream === stream) this.close();
    };
    try {
      await stream.commit(AT_REST);
      claim.isMade = true;
      return stream;
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  /** A refusal here says nothing of the row of the table, which is not to be quarantined for it. */
  #explained(error: unknown): UrutauError {
    const known = asUrutauError(error, 'sink-unavailable');
    const { code, message, remedy } = known;
    const { target } = this.#options;
    const refused = isRefusal(known);
    return new UrutauError(refused ? 'precondition-failed' : code, `the dead letters in ${target}: ${message}`, {
      cause: error,
      remedy: refused ? `Make ${target} take the row, or let the table pause (onPoison: pause).` : remedy,
    });
  }
}

async function* goneBatches(ids: AsyncIterable<LetterId>): AsyncGenerator<Batch, void> {
  let gone: LetterId[] = [];
  for await (const { pipeline, target, position } of ids) {
    gone.push({ pipeline, target, position });
    if (gone.length < LETTERS_MAX) continue;
    yield lettersGoneBatch(gone);
    gone = [];
  }
  if (gone.length > 0) yield lettersGoneBatch(gone);
}

function pieces(letters: readonly DeadLetter[]): DeadLetter[][] {
  const all: DeadLetter[][] = [];
  let bytes = 0;
  for (const letter of letters) {
    const own = letter.change.length + letter.image.length + 512;
    const last = all.at(-1);
    if (last === undefined || bytes + own > BATCH_BYTES || last.length >= LETTERS_MAX) {
      all.push([letter]);
      bytes = own;
    } else {
      last.push(letter);
      bytes += own;
    }
  }
  return all;
}

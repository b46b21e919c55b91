import { setTimeout as pause } from 'node:timers/promises';
import { type Coverage, casesOf } from './coverage.ts';
import type { Generator } from './generator.ts';
import type { Pace } from './pace.ts';
import type { OracleSource, SourceWriter } from './ports.ts';
import { TABLE_NAMES, type TableName } from './tables.ts';
import { lastingStatements, type Transaction } from './transaction.ts';

export interface LaneOptions {
  lane: number;
  source: OracleSource;
  generator: Generator;
  pace: Pace;
  /** Rows a second at factor 1. */
  rate: number;
  rowsMax: number;
  coverage: Coverage;
  counts: LaneCounts;
  nowMs: () => number;
}

/** Over all lanes. */
export interface LaneCounts {
  committed: number;
  undone: number;
  rows: number;
  /** The connection broke while a transaction ran, so its end was read back: how it had ended. */
  readBack: { committed: number; undone: number };
  /** Committed transactions that touched the table. */
  changes: Record<TableName, number>;
}

/** A source that is away for longer is not part of a test. */
const AWAY_MS_MAX = 180_000;
const RETRY_MS = 50;
/** An episode of backlog is cut off after so many times its length. */
const LATE_FACTOR_MAX = 2;

/** One writer: plays its generator's transactions at its pace, and tells the generator which of them were committed. */
export class Lane {
  readonly #options: LaneOptions;
  #writer: SourceWriter | null = null;
  #number = 0;
  #isAbandoned = false;
  /** Does not wait for its pace. */
  hurry = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  async seed(): Promise<void> {
    for (const transaction of this.#options.generator.seed()) {
      if (!(await this.#perform(transaction))) throw new Error('a transaction with rows of the beginning was undone');
      this.#options.generator.book.commit();
    }
  }

  /** Until told to stop; what is under way then is finished. */
  async run(signal: AbortSignal): Promise<void> {
    const { generator, pace, rate, coverage, nowMs } = this.#options;
    let startMs = nowMs();
    let dueMs = 0;
    let episode: { leaveAtMs: number } | null = null;
    while (!signal.aborted) {
      const aheadMs = startMs + dueMs - nowMs();
      if (aheadMs > 1 && this.hurry) startMs -= aheadMs;
      else if (aheadMs > 1) {
        // In steps, so that a hurry is heard of.
        await pause(Math.min(aheadMs, RETRY_MS), undefined, { signal }).catch(() => {});
        continue;
      }
      let beat = pace.at(dueMs);
      if (beat.only !== null) {
        episode ??= { leaveAtMs: nowMs() + LATE_FACTOR_MAX * (beat.untilMs - dueMs) };
        // A machine that cannot do so much would be at it for the rest of the run.
        if (nowMs() >= episode.leaveAtMs) {
          dueMs = beat.untilMs;
          startMs = nowMs() - dueMs;
          beat = pace.at(dueMs);
        }
      }
      const transaction = generator.next(beat.only);
      const committed = await this.play(transaction);
      if (beat.only === null && episode !== null && committed) {
        coverage.hit('backlog episode');
        episode = null;
      }
      dueMs = pace.after(dueMs, (transaction.rows / rate) * 1_000);
    }
  }

  /** Plays one transaction of this lane's generator. Answers whether it was committed. */
  async play(transaction: Transaction): Promise<boolean> {
    const { generator, coverage, counts, rowsMax } = this.#options;
    const committed = await this.#perform(transaction);
    if (committed) {
      generator.book.commit();
      counts.committed++;
      counts.rows += transaction.rows;
      const statements = lastingStatements(transaction);
      for (const table of TABLE_NAMES) {
        if (statements.some((statement) => 'table' in statement && statement.table === table)) counts.changes[table]++;
      }
    } else {
      generator.book.undo();
      counts.undone++;
    }
    coverage.hit(...casesOf(transaction, { committed, rowsMax }));
    return committed;
  }

  async close(): Promise<void> {
    await this.#writer?.close();
    this.#writer = null;
  }

  /** Ends at once, whatever is under way. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    await this.close();
  }

  /** An end that nobody confirmed is read back: the mark of the newest committed transaction says which it was. */
  async #perform(transaction: Transaction): Promise<boolean> {
    const { source, counts } = this.#options;
    const number = ++this.#number;
    try {
      this.#writer ??= await this.#reconnected();
      await this.#writer.run(transaction, number);
      return transaction.end === 'commit';
    } catch (error) {
      if (!source.isOutage(error)) throw error;
      const committed = (await this.#readBack()) === number;
      counts.readBack[committed ? 'committed' : 'undone']++;
      return committed;
    }
  }

  async #readBack(): Promise<number> {
    for (;;) {
      await this.close();
      await pause(RETRY_MS);
      try {
        this.#writer = await this.#reconnected();
        return await this.#writer.lastCommitted();
      } catch (error) {
        if (!this.#options.source.isOutage(error)) throw error;
      }
    }
  }

  async #reconnected(): Promise<SourceWriter> {
    const { source, lane, nowMs } = this.#options;
    const untilMs = nowMs() + AWAY_MS_MAX;
    for (;;) {
      if (this.#isAbandoned) throw new Error('the run was abandoned');
      try {
        return await source.connect(lane);
      } catch (error) {
        if (!source.isOutage(error)) throw error;
        if (nowMs() > untilMs) throw new Error(`the source was away for ${AWAY_MS_MAX / 1000} s`, { cause: error });
        await pause(RETRY_MS);
      }
    }
  }
}

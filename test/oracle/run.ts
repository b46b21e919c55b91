import { setTimeout as pause } from 'node:timers/promises';
import { CLASSES, compareRows, type Differences, type RowImage } from './compare.ts';
import { ALL_CASES, type Case, Coverage, OPERATION_CASES } from './coverage.ts';
import { Generator, type WorkloadShape } from './generator.ts';
import { Lane, type LaneCounts } from './lane.ts';
import { Pace } from './pace.ts';
import type { OracleDestination, OracleSource } from './ports.ts';
import { PositionWatch } from './positions.ts';
import { imageOf, TABLE_NAMES, TABLES, type TableName } from './tables.ts';
import type { Transaction } from './transaction.ts';

/** What the run reads of the host's `/statusz`. */
export interface HostStatus {
  tables: {
    source: string;
    state: string;
    reason: { code: string; message: string } | null;
    snapshot: unknown;
    offset: string | null;
    lastCommitTs: string | null;
  }[];
}

export interface OracleOptions extends WorkloadShape {
  source: OracleSource;
  destination: OracleDestination;
  seed: number;
  /** Rows that are changed in a second, over all tables. */
  rate: number;
  /** How long it will be: decides whether there is room for episodes of backlog. */
  runMs?: number;
  /** Writers, each with a connection and keys of its own. */
  lanes?: number;
  /**
   * Answers null while the host has none. Without it there are no gates on positions, and the caller sees to it that the
   * first copy is over before the run settles.
   */
  status?: () => Promise<HostStatus | null>;
  /** `operations`: what a run of any length can hit. */
  demand?: 'all' | 'operations' | readonly Case[];
  /** The command that does it all again with this seed. */
  repro: string;
}

export interface Verdict {
  /** Nothing is wrong. */
  ok: boolean;
  /** What is wrong, in words; empty for nothing. */
  problems: string[];
  /** Of the destination against the source, by table; empty where it did not come to that. */
  differences: Partial<Record<TableName, Differences>>;
  counts: Readonly<LaneCounts>;
  /** From the end of the changes until the last of them was in the destination; null where it never was. */
  settledMs: number | null;
  /** Age of the newest durable change of the slowest table, over the tables that are being changed. */
  lagSeconds: { median: number; max: number } | null;
  /** Everything to be told of a failure: problems, seed and how to repeat it. */
  report: string;
}

export interface SettleOptions {
  withinMs?: number;
  hostHasEnded?: boolean;
}

const SETTLE_MS_MAX = 120_000;
const POLL_MS = 50;
/** Until the first copy is done it is looked at often, so that a short one is not missed. */
const SAMPLE_MS = { copying: 25, later: 500 };

/**
 * One run of the acceptance workload: `start`, then the host's life as the caller wants it, `stop`, `verdict`. Mutations
 * begin with `start`, so a host that is started afterwards finds them under way.
 */
export class OracleRun {
  readonly coverage = new Coverage();
  readonly counts: LaneCounts = {
    committed: 0,
    undone: 0,
    rows: 0,
    readBack: { committed: 0, undone: 0 },
    changes: { accounts: 0, items: 0, events: 0 },
  };
  readonly #options: OracleOptions;
  readonly #lanes: { lane: Lane; generator: Generator }[];
  readonly #stopMutations = new AbortController();
  readonly #stopSamples = new AbortController();
  readonly #watch: PositionWatch;
  readonly #lagsSeconds: number[] = [];
  #mutations: Promise<void> = Promise.resolve();
  #samples: Promise<void> = Promise.resolve();
  #last: HostStatus | null = null;
  readonly #seen: Record<TableName, { atMs: number; changes: number; busySinceMs: number | null }> = {
    accounts: { atMs: Date.now(), changes: 0, busySinceMs: null },
    items: { atMs: Date.now(), changes: 0, busySinceMs: null },
    events: { atMs: Date.now(), changes: 0, busySinceMs: null },
  };
  readonly #problems: string[] = [];
  #settled: Promise<void> | null = null;
  #settledMs: number | null = null;
  #closing: { transaction: Transaction; before: string; atMs: number } | null = null;

  constructor(options: OracleOptions) {
    this.#options = options;
    const { seed, lanes = 2, rate, runMs = null, source, transactionRowsMax } = options;
    this.#watch = new PositionWatch((a, b) => source.comparePositions(a, b));
    this.#lanes = Array.from({ length: lanes }, (_, lane) => {
      const generator = new Generator({ ...options, seed, lane, lanes });
      const pace = new Pace({ seed, runMs });
      const { coverage, counts } = this;
      const shares = { coverage, counts, rowsMax: transactionRowsMax, rate: rate / lanes, nowMs };
      return { generator, lane: new Lane({ lane, source, generator, pace, ...shares }) };
    });
  }

  /** Makes and fills the tables; resolves when the mutations have begun. */
  async start(): Promise<void> {
    const { source, status } = this.#options;
    await source.createTables({ lanes: this.#lanes.length });
    await Promise.all(this.#lanes.map(({ lane }) => lane.seed()));
    this.#mutations = this.#mutate();
    this.#mutations.catch(() => {});
    if (status) this.#samples = this.#sample(status, this.#stopSamples.signal);
    this.#samples.catch(() => {});
  }

  /** The newest that the host has said of itself; null before the first. */
  get lastStatus(): HostStatus | null {
    return this.#last;
  }

  /** Rejects as soon as a writer cannot go on; resolves when the run is stopped. */
  get mutating(): Promise<void> {
    return this.#mutations;
  }

  /** Ends the mutations with one in every table. Rejects when a writer could not go on. */
  async stop(): Promise<void> {
    this.#stopMutations.abort();
    try {
      await this.#mutations;
      const { generator, lane } = this.#lanes[0]!;
      while (this.#closing === null) {
        const before = await this.#options.source.position();
        const transaction = generator.closing();
        if (await lane.play(transaction)) this.#closing = { transaction, before, atMs: nowMs() };
      }
    } catch (error) {
      throw new Error(`the workload could not go on; ${this.#repeat()}`, { cause: error });
    }
  }

  /**
   * Waits until the last change has arrived and the host has said so. `hostHasEnded`: by itself, caught up, so that nobody
   * can be asked for positions any more. `verdict` does it where the caller has not; later calls change nothing.
   */
  settle({ withinMs = SETTLE_MS_MAX, hostHasEnded = false }: SettleOptions = {}): Promise<void> {
    const closing = this.#closing;
    if (closing === null) throw new Error('a run settles after stop()');
    this.#settled ??= (async () => {
      const untilMs = nowMs() + withinMs;
      const late = await this.#arrived(closing, untilMs);
      const behind = this.#options.status && !hostHasEnded ? await this.#passed(closing, untilMs) : [];
      if (late === null && behind.length === 0) this.#settledMs = nowMs() - closing.atMs;
      this.#problems.push(...(late === null ? [] : [late]), ...behind);
      this.#stopSamples.abort();
      await this.#samples;
      this.#problems.push(...this.#watch.violations);
    })();
    return this.#settled;
  }

  /** Settles, compares everything, and closes all connections. */
  async verdict(options: SettleOptions = {}): Promise<Verdict> {
    const problems = this.#problems;
    let differences: Verdict['differences'] = {};
    try {
      await this.settle(options);
      const known = await this.#compareAll(
        (table) => this.#known(table),
        (table) => this.#options.source.rows(table),
      );
      problems.push(...inWords(known, 'the source differs from the oracle'));
      if (problemsIn(known) === 0) {
        const { source, destination } = this.#options;
        const found = await this.#compareAll(
          (table) => source.rows(table),
          (table) => destination.rows(table),
        );
        problems.push(...inWords(found, 'the destination differs from the source'));
        differences = found;
      }
    } catch (error) {
      problems.push(`the rows could not be compared: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.#stopSamples.abort();
      await this.#close();
    }
    const missed = this.coverage.missing(this.#demanded());
    if (missed.length > 0) problems.push(`never hit: ${missed.join('; ')}`);
    const { counts } = this;
    const ok = problems.length === 0;
    const report = ok ? '' : [...problems, this.#repeat()].join('\n');
    return { ok, problems, differences, counts, settledMs: this.#settledMs, lagSeconds: this.#lag(), report };
  }

  /** Ends everything at once, for a test that failed on its way; after a verdict there is nothing left to end. */
  async abandon(): Promise<void> {
    this.#stopMutations.abort();
    this.#stopSamples.abort();
    await Promise.all(this.#lanes.map(({ lane }) => lane.abandon()));
    await this.#mutations.catch(() => {});
    await this.#close();
  }

  async #mutate(): Promise<void> {
    const { signal } = this.#stopMutations;
    try {
      await Promise.all(this.#lanes.map(({ lane }) => lane.run(signal)));
    } finally {
      // One that cannot go on ends the others.
      this.#stopMutations.abort();
    }
  }

  async #sample(status: () => Promise<HostStatus | null>, stop: AbortSignal): Promise<void> {
    let copying: { committed: number } | null = null;
    while (!stop.aborted) {
      const now = await status();
      if (now) {
        this.#last = now;
        this.#observe(now);
        const isCopying = now.tables.some(({ state }) => state === 'snapshotting');
        if (isCopying && copying === null) {
          if (this.counts.committed > 0) this.coverage.hit('mutations before the snapshot');
          copying = { committed: this.counts.committed };
        } else if (isCopying && this.counts.committed > copying!.committed) {
          this.coverage.hit('mutations during the snapshot');
        } else if (!isCopying) copying = null;
        const hurry = isCopying && this.coverage.count('mutations during the snapshot') === 0;
        for (const { lane } of this.#lanes) lane.hurry = hurry;
      }
      const isCopied = now?.tables.every(({ state }) => state === 'streaming' || state === 'paused') ?? false;
      await pause(isCopied ? SAMPLE_MS.later : SAMPLE_MS.copying, undefined, { signal: stop }).catch(() => {});
    }
  }

  #observe({ tables }: HostStatus): void {
    const samples = TABLE_NAMES.flatMap((table) => {
      const found = tables.find(({ source }) => source === this.#options.source.nameOf(table));
      return found ? [{ table, position: found.offset, changes: this.counts.changes[table], found }] : [];
    });
    this.#watch.observe(nowMs(), samples);
    this.#measureLag(samples.map(({ table, changes, found }) => ({ table, changes, durableTs: found.lastCommitTs })));
  }

  /** A table that nobody changed for a while is old, and not late: its lag begins with the next change. */
  #measureLag(samples: { table: TableName; changes: number; durableTs: string | null }[]): void {
    const atMs = Date.now();
    const lags = samples.flatMap(({ table, changes, durableTs }) => {
      const seen = this.#seen[table];
      const busySinceMs = changes > seen.changes ? (seen.busySinceMs ?? seen.atMs) : null;
      this.#seen[table] = { atMs, changes, busySinceMs };
      if (busySinceMs === null || durableTs === null) return [];
      return [Math.max(0, atMs - Math.max(Date.parse(durableTs), busySinceMs)) / 1_000];
    });
    if (lags.length > 0) this.#lagsSeconds.push(Math.max(...lags));
  }

  /** Null, or why the rows of the last transaction are not all there. */
  async #arrived({ transaction }: { transaction: Transaction }, untilMs: number): Promise<string | null> {
    const waiting = new Map(transaction.statements.flatMap((one) => (one.kind === 'insert' ? [[one.table, one]] : [])));
    for (;;) {
      for (const [table, { rows }] of waiting) {
        const { code, rev } = rows[0]!;
        if ((await this.#options.destination.revOf(table, code)) === rev) waiting.delete(table);
      }
      if (waiting.size === 0) return null;
      const paused = this.#last?.tables.filter(({ state }) => state === 'paused') ?? [];
      const stuck = paused.map(({ source, reason }) => `${source} is paused: ${reason?.code}: ${reason?.message}`);
      const isHopeless = stuck.length > 0 && stuck.length === waiting.size;
      if (isHopeless || nowMs() > untilMs) {
        return [`the last change of ${[...waiting.keys()].join(', ')} did not arrive in time`, ...stuck].join('; ');
      }
      await pause(POLL_MS);
    }
  }

  /**
   * Each table is copied, and its committed position is beyond where its last transaction began and not beyond the log's
   * end. The row alone says less: a first copy brings the newest row before older ones.
   */
  async #passed({ before }: { before: string }, untilMs: number): Promise<string[]> {
    const { source } = this.#options;
    const problemOf = (table: TableName): string | null => {
      const status = this.#last?.tables.find((found) => found.source === source.nameOf(table));
      if (status?.snapshot !== 'done') return `the first copy of ${table} is not done`;
      const last = this.#watch.last(table);
      if (last !== null && source.comparePositions(last, before) > 0) return null;
      return `the position of ${table} is ${last}: not beyond ${before}, where its last transaction began`;
    };
    while (TABLE_NAMES.some((table) => problemOf(table) !== null) && nowMs() < untilMs) await pause(POLL_MS);
    const end = await source.position();
    return TABLE_NAMES.flatMap((table) => {
      const last = this.#watch.last(table);
      const isTooFar = last !== null && source.comparePositions(last, end) > 0;
      const problem = isTooFar ? `the position of ${table} is ${last}: beyond the log's end ${end}` : problemOf(table);
      return problem === null ? [] : [problem];
    });
  }

  async #compareAll(
    expected: (table: TableName) => Iterable<RowImage> | AsyncIterable<RowImage>,
    actual: (table: TableName) => AsyncIterable<RowImage>,
  ): Promise<Record<TableName, Differences>> {
    const found = {} as Record<TableName, Differences>;
    for (const table of TABLE_NAMES) {
      const { compare, partsOf } = TABLES[table];
      const dead = new Set(this.#lanes.flatMap(({ generator }) => generator.book.pages[table].dead));
      found[table] = await compareRows({
        expected: expected(table),
        actual: actual(table),
        compare,
        wasDeleted: (code) => dead.has(code),
        name: (code) => JSON.stringify(partsOf(code).join('/')),
      });
    }
    return found;
  }

  *#known(table: TableName): Iterable<RowImage> {
    const { compare } = TABLES[table];
    const rows = this.#lanes.flatMap(({ generator }) => generator.book.pages[table].live);
    rows.sort((a, b) => compare(a.code, b.code));
    for (const { code, rev, payload } of rows) {
      yield { code, rev, image: imageOf(table, rev, payload?.fingerprint ?? null) };
    }
  }

  #demanded(): readonly Case[] {
    const { demand = 'operations' } = this.#options;
    if (demand === 'all') return ALL_CASES;
    return demand === 'operations' ? OPERATION_CASES : demand;
  }

  #lag(): Verdict['lagSeconds'] {
    if (this.#lagsSeconds.length === 0) return null;
    const sorted = [...this.#lagsSeconds].sort((a, b) => a - b);
    return { median: sorted[Math.floor(sorted.length / 2)]!, max: sorted.at(-1)! };
  }

  async #close(): Promise<void> {
    const { source, destination } = this.#options;
    await Promise.all([...this.#lanes.map(({ lane }) => lane.close()), source.close(), destination.close()]);
  }

  #repeat(): string {
    return `seed ${this.#options.seed}; once more: ${this.#options.repro}`;
  }
}

function nowMs(): number {
  return performance.now();
}

function problemsIn(differences: Record<TableName, Differences>): number {
  return TABLE_NAMES.reduce(
    (sum, table) => sum + CLASSES.reduce((all, kind) => all + differences[table].counts[kind], 0),
    0,
  );
}

function inWords(differences: Record<TableName, Differences>, what: string): string[] {
  return TABLE_NAMES.flatMap((table) => {
    const { counts, examples } = differences[table];
    const kinds = CLASSES.filter((kind) => counts[kind] > 0).map((kind) => `${counts[kind]} ${kind}`);
    return kinds.length === 0 ? [] : [`${what} in ${table}: ${kinds.join(', ')} (${examples.join('; ')})`];
  });
}

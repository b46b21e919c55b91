import { asUrutauError } from '@urutau/contract';
import type { CheckpointStore } from '../../checkpoint/store.ts';
import type { FlightClient } from '../../flight/client.ts';
import type { Log } from '../../observe/log.ts';
import type { SinkPort } from '../sink/port.ts';
import { openSink } from '../sink/sink.ts';
import type { Table } from '../table/table.ts';
import { DeadLetterBox, type LettersClaim } from './dead-letter-box.ts';
import { deadLettersOf } from './read-letters.ts';
import { type ReplayOptions, removeOlder } from './replay.ts';

export type ReadBack = <Answer>(ask: (client: FlightClient) => Promise<Answer>) => Promise<Answer>;

export interface ReplaysOptions {
  pipeline: string;
  run: string;
  /** The table of dead letters, by its full name in the destination. */
  target: string;
  store: () => CheckpointStore;
  log: Log;
  /** Resolves with a living sink. */
  sinkClient: () => Promise<FlightClient>;
  /** As the source calls itself. */
  sourceName: () => string;
  /** Ends what is waited for. */
  stop: () => AbortSignal;
}

/** What a pipeline does with its dead letters: one box for each sink process, and one read of the letters at a time. */
export class Replays {
  readonly #options: ReplaysOptions;
  readonly #boxes = new WeakMap<FlightClient, DeadLetterBox>();
  readonly #claim: LettersClaim = { isMade: false };
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** Resolves when nothing is being done with dead letters. */
  get over(): Promise<unknown> {
    return this.#turn;
  }

  /** The other run that had taken the letters over is gone. */
  claimAnew(): void {
    this.#claim.isMade = false;
  }

  /** One for each sink process: all tables share its write stream. */
  boxOf(client: FlightClient, sink: SinkPort): DeadLetterBox {
    const { pipeline: writer, run, target } = this.#options;
    const box = this.#boxes.get(client) ?? new DeadLetterBox({ sink, target, writer, run, claim: this.#claim });
    this.#boxes.set(client, box);
    return box;
  }

  /** Dead letters that do not count do no harm, so what fails here is done by the next replay. */
  removeSoon(readBack: ReadBack, table: Table, before: bigint): void {
    void this.inTurn(readBack, table, (options) => removeOlder(options, before)).catch((error) =>
      this.#options.log.warn(
        'dead letters that no longer count could not be removed; the next `table replay` does it',
        {
          table: table.name,
          error: asUrutauError(error).message,
        },
      ),
    );
  }

  inTurn<T>(readBack: ReadBack, table: Table, work: (options: ReplayOptions) => Promise<T>): Promise<T> {
    const { pipeline, run, store, target, sinkClient, sourceName, stop } = this.#options;
    const turn = this.#turn.then(async () => {
      const client = await sinkClient();
      const sink = await openSink(client, pipeline, store, stop());
      return readBack((reader) =>
        work({
          table: table.settings,
          sink,
          source: sourceName(),
          writer: pipeline,
          run,
          seenRun: table.checkpoint?.run ?? null,
          box: this.boxOf(client, sink),
          letters: () => deadLettersOf(reader, target, { pipeline, target: table.settings.target }),
        }),
      );
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }
}

import type { z } from 'zod';
import { sink } from './sink.ts';
import { source } from './source.ts';
import { table } from './table.ts';
import { block, list, matching, oneOf, size, text, wait, whole } from './values.ts';

const store = block('Where positions are kept for a sink that cannot hold them.', {
  kind: oneOf('Default sqlite.', ['sqlite', 'memory']),
  path: text('sqlite: the file, default below the state folder.'),
});

const supervision = block('How driver processes are watched.', {
  heartbeat: wait('Between two heartbeats, default 2s.'),
  misses: whole('Missed heartbeats after which a driver is dead, default 7.', { min: 1 }),
  ready: wait('In which a driver must be ready, default 30s.'),
  stop: wait('In which a driver must end when asked, default 15s.'),
  backoff: block('Pause before a restart; it doubles.', {
    first: wait('First pause, default 1s.'),
    max: wait('Longest pause, default 60s.'),
  }),
  breaker: block('When restarts are given up for a while.', {
    failures: whole('Failures that open the breaker, default 3.', { min: 1 }),
    window: wait('In which they are counted, default 5m.'),
    hold: wait('For how long it stays open, default 60s.'),
    // biome-ignore lint/suspicious/noThenProperty: the field of the pipeline file has this name.
    then: oneOf('hold (default) keeps the host up and not ready; exit ends it.', ['hold', 'exit']),
  }),
});

/** The shape of a pipeline file. What fields demand of each other is in rules/. */
export const pipelineFile = block(
  'One replication job of urutau-host.',
  {
    tables: list('The tables.', table),
    store,
    window: size('Bytes in flight between source and destination, default 64Mi.'),
    pausedLogLimit: size('Source log that a paused table may hold back, default unlimited.'),
    supervision,
  },
  {
    pipeline: matching(
      'Name of the pipeline; names its state folder and its checkpoints.',
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
      'a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter or digit',
    ),
    source,
    sink,
  },
);

export type PipelineFile = z.infer<typeof pipelineFile>;
export type SourceBlock = PipelineFile['source'];
export type SinkBlock = PipelineFile['sink'];
export type TableBlock = NonNullable<PipelineFile['tables']>[number];

/** A file of which any field may be missing, since what the schema refused was taken out. */
export type Draft = DeepPartial<PipelineFile>;

type DeepPartial<T> = T extends (infer Item)[]
  ? (DeepPartial<Item> | undefined)[]
  : T extends object
    ? { [Field in keyof T]?: DeepPartial<T[Field]> }
    : T;

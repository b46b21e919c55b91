import { TABLE_NAMES } from './tables.ts';

/**
 * The pipeline file of a run between two Postgres. Small chunks make the first copy of a small table long enough for
 * mutations to fall into it; restarts come soon and without an end, since a run may kill drivers all the time.
 */
export function oraclePipeline({
  sourceUri,
  sinkUri,
  slotName,
  rows,
}: {
  sourceUri: string;
  sinkUri: string;
  slotName: string;
  rows: number;
}): Record<string, unknown> {
  return {
    pipeline: 'oracle',
    source: { kind: 'postgres', uri: sourceUri, slotName },
    sink: { type: 'postgres', uri: sinkUri, flush: { interval: '200ms' } },
    supervision: { backoff: { first: '100ms', max: '1s' }, breaker: { failures: 1000 } },
    tables: TABLE_NAMES.map((table) => ({
      source: `public.${table}`,
      target: table,
      ...(rows <= 10_000 ? { chunkRows: Math.max(10, Math.floor(rows / 40)) } : {}),
    })),
  };
}

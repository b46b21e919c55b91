import { inject, onTestFinished } from 'vitest';
import { oraclePipeline } from '../../oracle/pipeline.ts';
import { PostgresDestination } from '../../oracle/postgres/destination.ts';
import { PostgresSource } from '../../oracle/postgres/source.ts';
import { type OracleOptions, OracleRun } from '../../oracle/run.ts';
import { freshDatabase } from '../../services/databases.ts';
import { HostProcess } from '../pipeline/host-process.ts';

export const SEED = Number(process.env['URUTAU_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** A run between two databases of the test's own, and the host that replicates them; neither is started yet. */
export async function replicated(
  file: string,
  options: Omit<OracleOptions, 'source' | 'destination' | 'seed' | 'repro' | 'status'>,
) {
  const source = await freshDatabase(inject('postgres18'), 'oracle_src');
  const sink = await freshDatabase(inject('postgres18'), 'oracle_dst');
  const uris = { sourceUri: source.uri, sinkUri: sink.uri };
  const host = new HostProcess({
    pipeline: oraclePipeline({ ...uris, slotName: `s_${source.name}`, rows: options.rows }),
  });
  const run = new OracleRun({
    ...options,
    source: new PostgresSource(source.uri),
    destination: new PostgresDestination(sink.uri),
    status: () => host.status(),
    seed: SEED,
    repro: `URUTAU_TEST_SEED=${SEED} npx vitest run ${file}`,
  });
  onTestFinished(() => run.abandon());
  return { run, host, source, sink };
}

/** What a run of seconds takes. */
export const SHORT = { rows: 200, rate: 200, transactionRowsMax: 40, payloadBytesMax: 16_384 } as const;

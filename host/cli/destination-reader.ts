import type { ReadBack } from '../pipeline/quarantine/replays.ts';
import type { Pipeline } from '../spec/pipeline.ts';
import type { PipelineDrivers } from './pipeline-drivers.ts';
import { readBack } from './read-back.ts';
import type { Supervised } from './supervise.ts';

/** Starts the reader of the destination when it is asked; null for a sink that has none. */
export async function destinationReader(
  { sink: { config }, supervision: settings }: Pipeline,
  { sink: driver }: PipelineDrivers,
  { signal, ...rest }: Pick<Supervised, 'log' | 'random'> & { signal: AbortSignal },
): Promise<ReadBack | null> {
  if (driver.manifest.reader === undefined) return null;
  return readBack({ driver, config, settings, ...rest }, signal);
}

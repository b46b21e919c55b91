import type { ReadBack } from '../pipeline/pipeline.ts';
import type { Pipeline } from '../spec/pipeline.ts';
import { type Finding, placed, SpecError } from '../spec/problem.ts';
import type { PipelineDrivers } from './pipeline-drivers.ts';
import { readBack } from './read-back.ts';
import type { Supervised } from './supervise.ts';

/**
 * Starts the reader of the destination when it is asked; null for a sink that has none. Throws a `SpecError` that names
 * every table with `onPoison: quarantine` then.
 */
export async function destinationReader(
  pipeline: Pipeline,
  { sink: driver }: PipelineDrivers,
  { signal, ...rest }: Pick<Supervised, 'log' | 'random'> & { signal: AbortSignal },
): Promise<ReadBack | null> {
  if (driver.manifest.reader === undefined) {
    refuseQuarantine(pipeline, driver.manifest.name);
    return null;
  }
  return readBack({ driver, config: pipeline.sink.config, settings: pipeline.supervision, ...rest }, signal);
}

function refuseQuarantine({ file, tables, written }: Pipeline, sink: string): void {
  const findings = tables.flatMap(({ onPoison }, index): Finding[] => {
    if (onPoison !== 'quarantine') return [];
    const what = `quarantine needs a destination that can be read back, and the driver ${sink} names no reader`;
    return [{ path: ['tables', index, 'onPoison'], what, remedy: 'write pause or stop' }];
  });
  if (findings.length > 0) throw new SpecError(placed(findings, { file, locate: ({ path }) => written.locate(path) }));
}

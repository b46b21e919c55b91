import { UrutauError } from '@urutau/contract';
import type { DriverPackage } from '../driver-packages/manifest.ts';
import { findReader } from '../driver-packages/reader.ts';
import { ofDestination } from '../flight/read-destination.ts';
import type { Supervised } from './supervise.ts';
import { type WithDriver, withDriver } from './with-driver.ts';

/**
 * Starts the reader of the sink's destination for one conversation (PKG-6): a source that gives snapshots of targets by
 * the names of the pipeline (`readDestination`). Throws `config-invalid` for a sink whose
 * destination cannot be read back.
 */
export async function readBack(sink: Omit<Supervised, 'role'>, signal: AbortSignal): Promise<WithDriver> {
  const reader = await findReader(sink.driver);
  if (reader === null) throw cannotBeReadBack(sink.driver);
  const withReader = withDriver(
    { ...sink, role: 'source', driver: reader, log: sink.log.child({ reads: 'destination' }) },
    signal,
  );
  return async (ask) => {
    let answered: { error: unknown } | null = null;
    try {
      return await withReader((reader) =>
        ask(reader).catch((error) => {
          answered = { error };
          throw error;
        }),
      );
    } catch (error) {
      // What is asked meanwhile of others is theirs; `readDestination` tells what its reads met.
      throw answered === null && !signal.aborted ? ofDestination(error) : error;
    }
  };
}

function cannotBeReadBack({ manifest: { name } }: DriverPackage): UrutauError {
  return new UrutauError(
    'config-invalid',
    `what the sink ${name} wrote cannot be read back: its driver has no reader`,
    {
      remedy: 'Of the built-in sinks postgres has one; a driver from outside names its own in plugin.yaml (`reader`).',
    },
  );
}

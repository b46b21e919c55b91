import { join } from 'node:path';
import { UrutauError } from '@urutau/contract';
import { type DriverPackage, readDriverPackage } from './manifest.ts';

/**
 * The driver that reads a sink's targets back (PKG-6), to be started as a source with the sink's own configuration; null
 * when the sink names none. Throws `config-invalid` when the folder that it names holds no such driver.
 */
export async function findReader(sink: DriverPackage): Promise<DriverPackage | null> {
  const { reader } = sink.manifest;
  if (reader === undefined) return null;
  const found = await readDriverPackage(join(sink.directory, reader));
  if (found.manifest.roles.includes('source')) return found;
  throw new UrutauError(
    'config-invalid',
    `the driver ${found.manifest.name} in ${found.directory} cannot read back what the sink ${sink.manifest.name} wrote: its roles are ${found.manifest.roles.join(', ')}`,
    { remedy: "Correct `reader` in the sink's plugin.yaml: it names the folder of a driver with the role source." },
  );
}

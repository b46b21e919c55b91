import { access, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UrutauError } from '@urutau/contract';
import { closest } from '../spec/did-you-mean.ts';
import { type DriverPackage, readDriverPackage } from './manifest.ts';

export type DriverRole = 'source' | 'sink';

/** How a pipeline names its driver. */
export type DriverReference =
  | { readonly kind: 'builtin'; readonly name: string }
  | { readonly kind: 'folder'; readonly directory: string }
  | { readonly kind: 'installed'; readonly name: string; readonly version?: string };

export interface DriverPlaces {
  /** The folder of the host's own code; the built-in drivers are looked for from there upwards. */
  readonly hostDirectory: string;
  /** Where drivers are installed, each in `<name>@<version>`. */
  readonly installedDirectory: string;
}

/** Finds and reads the driver that a pipeline names. Throws `config-invalid` when there is none or it has not the role. */
export async function findDriver(
  reference: DriverReference,
  role: DriverRole,
  places: DriverPlaces,
): Promise<DriverPackage> {
  const driver = await readDriverPackage(await directoryOf(reference, role, places));
  const { name, roles } = driver.manifest;
  if (roles.includes(role)) return driver;
  throw new UrutauError(
    'config-invalid',
    `the driver ${name} in ${driver.directory} is no ${role}: its roles are ${roles.join(', ')}`,
    {
      remedy: `Name a driver that can be a ${role}.`,
    },
  );
}

/** Every driver that can be named without a folder, built in or installed; those that cannot be read are left out. */
export async function listDrivers(places: DriverPlaces): Promise<readonly DriverPackage[]> {
  const builtin = [...(await builtinDirectories(places.hostDirectory)).values()].flatMap((folder) => [
    join(folder, 'source'),
    join(folder, 'sink'),
  ]);
  const installed = (await installedVersions(places.installedDirectory)).map(({ directory }) => directory);
  const found = await Promise.allSettled([...builtin, ...installed].map(readDriverPackage));
  return found.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

async function directoryOf(reference: DriverReference, role: DriverRole, places: DriverPlaces): Promise<string> {
  switch (reference.kind) {
    case 'folder':
      return resolve(reference.directory);
    case 'builtin':
      return builtinDirectory(reference.name, role, places.hostDirectory);
    case 'installed':
      return installedDirectory(reference, places.installedDirectory);
  }
}

async function builtinDirectory(name: string, role: DriverRole, hostDirectory: string): Promise<string> {
  const vendors = await builtinDirectories(hostDirectory);
  const folder = vendors.get(name);
  if (folder !== undefined && (await exists(join(folder, role, 'plugin.yaml')))) return join(folder, role);
  const withRole: string[] = [];
  for (const [vendor, path] of vendors) if (await exists(join(path, role, 'plugin.yaml'))) withRole.push(vendor);
  throw new UrutauError(
    'config-invalid',
    `there is no built-in ${role} driver named ${name}${suggestion(name, withRole)}`,
    {
      remedy:
        withRole.length === 0 ? 'Install the package of the driver.' : `Built in are: ${withRole.sort().join(', ')}.`,
    },
  );
}

/** Vendor to folder. In the repository they lie in `drivers/<vendor>`, installed from packages in `@urutau/driver-<vendor>`. */
async function builtinDirectories(hostDirectory: string): Promise<Map<string, string>> {
  const vendors = new Map<string, string>();
  const add = (vendor: string, folder: string) => {
    if (!vendors.has(vendor)) vendors.set(vendor, folder); // The nearest wins, as with any package.
  };
  for (let at = resolve(hostDirectory); ; at = dirname(at)) {
    // Only beside a host, so that a stranger's folder of this name above us is not taken for ours.
    if (await exists(join(at, 'host', 'package.json'))) {
      for (const name of await namesIn(join(at, 'drivers'))) add(name, join(at, 'drivers', name));
    }
    const scope = join(at, 'node_modules', '@urutau');
    for (const name of await namesIn(scope)) {
      if (name.startsWith('driver-')) add(name.slice('driver-'.length), join(scope, name));
    }
    if (at === dirname(at)) return vendors;
  }
}

async function installedDirectory(
  { name, version }: { name: string; version?: string },
  root: string,
): Promise<string> {
  const all = await installedVersions(root);
  const [newest] = all
    .filter((driver) => driver.name === name && isWanted(driver.version, version))
    .sort((a, b) => compareVersions(b.version, a.version));
  if (newest !== undefined) return newest.directory;
  const others = all.filter((driver) => driver.name === name).map((driver) => driver.version);
  const wanted = version === undefined ? name : `${name}@${version}`;
  const have =
    others.length > 0
      ? `; installed are its versions ${others.join(', ')}`
      : suggestion(
          name,
          all.map((driver) => driver.name),
        );
  throw new UrutauError('config-invalid', `the driver ${wanted} is not installed (looked in ${root})${have}`, {
    remedy: 'See `urutau-host driver list`; a folder is named with a path, such as ./my-driver.',
  });
}

/** `1.2` wants any 1.2.x; a pre-release is taken only when it is named in full. */
function isWanted(version: string, wanted: string | undefined): boolean {
  if (version === wanted) return true;
  return !version.includes('-') && (wanted === undefined || version.startsWith(`${wanted}.`));
}

async function installedVersions(root: string): Promise<{ name: string; version: string; directory: string }[]> {
  return (await namesIn(root)).flatMap((entry) => {
    const [, name, version] = /^(.+)@([^@]+)$/.exec(entry) ?? [];
    return name === undefined || version === undefined ? [] : [{ name, version, directory: join(root, entry) }];
  });
}

/** By the numbers of the release. */
function compareVersions(a: string, b: string): number {
  const [numbersA, numbersB] = [a, b].map((version) => version.split(/[-+]/)[0]!.split('.').map(Number));
  for (const [index, number] of numbersA!.entries()) {
    const difference = number - (numbersB![index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function suggestion(name: string, known: readonly string[]): string {
  const meant = closest(name, known);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

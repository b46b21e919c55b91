import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { findDriver, listDrivers } from '../../../../host/driver-packages/find.ts';

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'places-'));
  onTestFinished(() => rm(root, { recursive: true }));
});

const places = () => ({ hostDirectory: join(root, 'host', 'cli'), installedDirectory: join(root, 'installed') });

async function driverIn(path: string, name: string, role: 'source' | 'sink' = 'source'): Promise<string> {
  const directory = join(root, path);
  await mkdir(directory, { recursive: true });
  const manifest = { name, version: '1.0.0', roles: [role], command: ['node', 'main.js'], protocolVersions: [1] };
  await writeFile(join(directory, 'plugin.yaml'), JSON.stringify(manifest));
  return directory;
}

async function repository(): Promise<void> {
  await mkdir(join(root, 'host', 'cli'), { recursive: true });
  await writeFile(join(root, 'host', 'package.json'), '{}');
}

test('a built-in driver of the repository is found by its name and role', async () => {
  await repository();
  const directory = await driverIn('drivers/postgres/sink', 'postgres-sink', 'sink');
  await driverIn('drivers/postgres/source', 'postgres-source');

  expect((await findDriver({ kind: 'builtin', name: 'postgres' }, 'sink', places())).directory).toBe(directory);
});

test('a built-in driver that is installed as a package is found beside the host', async () => {
  const directory = await driverIn('node_modules/@urutau/driver-postgres/source', 'postgres-source');
  const hostDirectory = join(root, 'node_modules', 'urutau-host', 'dist');

  expect(
    (await findDriver({ kind: 'builtin', name: 'postgres' }, 'source', { ...places(), hostDirectory })).directory,
  ).toBe(directory);
});

test('a folder called drivers that has no host beside it is not ours', async () => {
  await driverIn('drivers/postgres/source', 'postgres-source');

  await expect(findDriver({ kind: 'builtin', name: 'postgres' }, 'source', places())).rejects.toThrow(
    'there is no built-in source driver named postgres',
  );
});

test('an unknown built-in driver names the known ones of that role', async () => {
  await repository();
  await driverIn('drivers/postgres/source', 'postgres-source');
  await driverIn('drivers/stdout/sink', 'stdout', 'sink');

  await expect(findDriver({ kind: 'builtin', name: 'postgers' }, 'source', places())).rejects.toMatchObject({
    message: 'there is no built-in source driver named postgers; did you mean postgres?',
    remedy: 'Built in are: postgres.',
  });
});

test('a driver that has not the wanted role is refused', async () => {
  const directory = await driverIn('mine', 'mine', 'sink');

  await expect(findDriver({ kind: 'folder', directory }, 'source', places())).rejects.toThrow(
    'is no source: its roles are sink',
  );
});

test('of several installed versions the newest that fits is taken', async () => {
  for (const version of ['1.2.0', '1.10.0', '1.10.1-rc.1', '2.0.0'])
    await driverIn(`installed/shop@${version}`, 'shop');
  const found = async (version?: string) =>
    (await findDriver({ kind: 'installed', name: 'shop', version }, 'source', places())).directory.split('@').pop();

  expect([await found(), await found('1'), await found('1.2'), await found('1.10.1-rc.1')]).toEqual([
    '2.0.0',
    '1.10.0',
    '1.2.0',
    '1.10.1-rc.1',
  ]);
});

test('a version that is not installed names those that are', async () => {
  await driverIn('installed/shop@1.2.0', 'shop');

  await expect(findDriver({ kind: 'installed', name: 'shop', version: '3' }, 'source', places())).rejects.toThrow(
    /^the driver shop@3 is not installed \(looked in .*\); installed are its versions 1\.2\.0$/,
  );
});

test('all drivers that can be named are listed', async () => {
  await repository();
  await driverIn('drivers/postgres/source', 'postgres-source');
  await driverIn('drivers/postgres/sink', 'postgres-sink', 'sink');
  await driverIn('installed/shop@1.2.0', 'shop');

  expect((await listDrivers(places())).map(({ manifest }) => manifest.name)).toEqual([
    'postgres-source',
    'postgres-sink',
    'shop',
  ]);
});

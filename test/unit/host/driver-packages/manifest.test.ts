import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { manifestSchema, parseManifest, readDriverPackage } from '../../../../host/driver-packages/manifest.ts';

const LEAST = 'name: shop\nversion: 1.2.3\nroles: [source]\ncommand: [node, main.js]\nprotocolVersions: [1]\n';

test('the least manifest gets its defaults', () => {
  expect(parseManifest(LEAST, 'plugin.yaml')).toEqual({
    name: 'shop',
    version: '1.2.3',
    roles: ['source'],
    command: ['node', 'main.js'],
    protocolVersions: [1],
    capabilities: { idempotentWrite: true },
    env: [],
  });
});

test('a full manifest is read as it is, with keys that belong to others', () => {
  const text = `${LEAST.replace('[source]', '[source, sink]')}capabilities: {idempotentWrite: false}\nenv: [AWS_REGION]\nstdout: host\nfixture: [./seed]\nhomepage: https://example.org\n`;

  expect(parseManifest(text, 'plugin.yaml')).toMatchObject({
    capabilities: { idempotentWrite: false },
    env: ['AWS_REGION'],
    stdout: 'host',
    fixture: ['./seed'],
  });
});

test.each([
  ['name: Shop!', 'plugin.yaml:1:7: name: must be letters, digits'],
  ['version: 1.2', 'plugin.yaml:2:10: version: '],
  ['roles: [reader]', 'plugin.yaml:3:9: roles[0]: '],
  ['roles: []', 'plugin.yaml:3:8: roles: '],
  ['command: node main.js', 'plugin.yaml:4:10: command: '],
  ['protocolVersions: [2, 3]', 'plugin.yaml:5:19: protocolVersions: speaks protocol version 2, 3; this host speaks 1'],
  ['env: [URUTAU_TOKEN]', 'plugin.yaml:6:7: env[0]: must not begin with URUTAU_'],
  ['env: [A B]', 'plugin.yaml:6:7: env[0]: must be the name of an environment variable'],
  ['stdout: host', "plugin.yaml:6:9: stdout: only a sink writes to the host's stdout"],
  ['reader: ../reader', 'plugin.yaml:6:9: reader: only the targets of a sink are read back'],
  ['stdout: mine', 'plugin.yaml:6:9: stdout: '],
  ['capabilties: {}', 'plugin.yaml:6:14: capabilties: unknown key; did you mean capabilities?'],
  ['name: [', 'plugin.yaml:'],
])('the line %s is refused at its place', (line, sentence) => {
  const key = line.split(':')[0]!;
  const text = LEAST.split('\n').some((other) => other.startsWith(`${key}:`))
    ? LEAST.replace(new RegExp(`^${key}:.*$`, 'm'), line)
    : `${LEAST}${line}\n`;

  expect(() => parseManifest(text, 'plugin.yaml')).toThrow(sentence);
});

test('all mistakes of a manifest are told at once', () => {
  expect(() => parseManifest('name: shop\nversion: one\nrole: source\n', 'plugin.yaml')).toThrow(
    /:2:10: version: .*\n.*roles: .*\n.*command: .*\n.*protocolVersions: .*\n.*:3:7: role: unknown key; did you mean roles\?/,
  );
});

test('a folder is read with its config schema, and without one', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'package-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'plugin.yaml'), LEAST);
  expect(await readDriverPackage(directory)).toEqual({
    directory,
    manifest: expect.objectContaining({ name: 'shop' }),
  });

  await writeFile(join(directory, 'config.schema.json'), '{"type":"object"}');
  expect((await readDriverPackage(directory)).configSchema).toEqual({ type: 'object' });

  await writeFile(join(directory, 'config.schema.json'), '{"type":');
  await expect(readDriverPackage(directory)).rejects.toThrow('config.schema.json is not a JSON Schema: ');
});

test('a folder without a manifest is named', async () => {
  await expect(readDriverPackage('/no/such/folder')).rejects.toThrow("/no/such/folder is not a driver's folder");
});

test('the published schema of plugin.yaml is the one that the host checks', async () => {
  const file = new URL('../../../../contract/schemas/plugin.schema.json', import.meta.url);

  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
    $id: 'plugin.schema.json',
    title: 'plugin.yaml: the manifest of an urutau driver',
    ...z.toJSONSchema(manifestSchema, { io: 'input' }),
  });
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENV } from '@urutau/contract';
import { expect, onTestFinished, test } from 'vitest';
import { readEnvironment } from '../../../../sdk/typescript/environment.ts';

test('a whole environment is read, over a socket and over TCP', () => {
  const env = completeEnvironment('{"url":"s3cret"}');
  const { [ENV.socket]: _, ...withoutSocket } = env;

  expect(readEnvironment(env, 'source')).toEqual({
    token: 'dG9rZW4=',
    config: { url: 's3cret' },
    pluginDir: '/plugin',
    address: 'unix:/run/s',
    tcp: false,
    lifeline: false,
    hostStdout: null,
  });
  expect(
    readEnvironment(
      { ...withoutSocket, [ENV.bind]: '127.0.0.1:0', [ENV.lifeline]: 'stdin', [ENV.hostStdout]: '3' },
      'source',
    ),
  ).toMatchObject({ address: '127.0.0.1:0', tcp: true, lifeline: true, hostStdout: 3 });
});

test.each([ENV.stage, ENV.token, ENV.config, ENV.pluginDir, ENV.protocolVersion, ENV.socket])(
  'without %s, or with nothing in it, the error names it',
  (name) => {
    const env = completeEnvironment('{}');

    expect(() => readEnvironment({ ...env, [name]: undefined }, 'source')).toThrow(name);
    expect(() => readEnvironment({ ...env, [name]: '' }, 'source')).toThrow(name);
  },
);

test.each<[string, Record<string, string>, string]>([
  ['the role of another', { [ENV.stage]: 'sink' }, `${ENV.stage}: expected source; came sink`],
  ['a relative config path', { [ENV.config]: 'config.json' }, `${ENV.config} is not an absolute path`],
  ['a config file that is not there', { [ENV.config]: '/nowhere/config.json' }, 'cannot be read (ENOENT)'],
  ['a version that is no number', { [ENV.protocolVersion]: 'one' }, 'is not an integer'],
  ['an older host', { [ENV.protocolVersion]: '0' }, 'speaks protocol version 1, the host at most 0'],
  ['two addresses', { [ENV.bind]: '127.0.0.1:0' }, 'expected exactly one of'],
])('%s is refused', (_, wrong, message) => {
  expect(() => readEnvironment({ ...completeEnvironment('{}'), ...wrong }, 'source')).toThrow(message);
});

test.each([
  ['0.0.0.0:0', false],
  ['10.0.0.1:80', false],
  ['example.org:80', false],
  ['127.evil.example:80', false],
  ['[::]:0', false],
  ['127.0.0.1:0', true],
  ['127.1.2.3:5', true],
  ['localhost:5', true],
  ['[::1]:5', true],
])('an address to listen on such as %s is taken: %s', (bind, taken) => {
  const { [ENV.socket]: _, ...env } = completeEnvironment('{}');
  const read = () => readEnvironment({ ...env, [ENV.bind]: bind }, 'source');

  if (taken) expect(read().address).toBe(bind);
  else expect(read).toThrow('is not a loopback address');
});

test('a config file that is no JSON is refused without a word of what it holds', () => {
  const read = () => readEnvironment(completeEnvironment('password: s3cret'), 'source');

  expect(read).toThrow('the file is not JSON');
  expect(read).not.toThrow(/s3cret/);
});

test('everything that is wrong is told at once', () => {
  expect(() => readEnvironment({}, 'sink')).toThrow(
    expect.objectContaining({
      code: 'config-invalid',
      message: expect.stringMatching(/STAGE.*TOKEN.*CONFIG.*PLUGIN_DIR.*PROTOCOL_VERSION.*SOCKET/),
    }),
  );
});

function completeEnvironment(config: string): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'urutau-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'config.json');
  writeFileSync(path, config);
  return {
    [ENV.stage]: 'source',
    [ENV.token]: 'dG9rZW4=',
    [ENV.config]: path,
    [ENV.pluginDir]: '/plugin',
    [ENV.protocolVersion]: '1',
    [ENV.socket]: '/run/s',
  };
}

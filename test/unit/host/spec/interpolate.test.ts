// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { interpolate } from '../../../../host/spec/interpolate.ts';

const ENV = { HOST: 'db.example', EMPTY: '', TRICKY: '${env:HOST} $& $1' };

test('variables, defaults and files are put in place anywhere in a text', () => {
  expect(filled('http://${env:HOST}:${env:PORT:-80}/${file:/run/x}')).toBe('http://db.example:80/in a file');
});

test('a default serves for a variable that is unset or empty, and may be empty', () => {
  expect(['${env:NONE:-a}', '${env:EMPTY:-a}', '${env:NONE:-}', '${env:HOST:-a}'].map(filled)).toEqual([
    'a',
    'a',
    '',
    'db.example',
  ]);
});

test('a variable that is set and empty is no problem', () => {
  expect(filled('${env:EMPTY}')).toBe('');
});

test('what a variable holds is not read as a reference again', () => {
  expect(filled('${env:TRICKY}')).toBe('${env:HOST} $& $1');
});

test('a doubled dollar stands for the characters themselves', () => {
  expect(filled('$${env:HOST} $5 $ {x}')).toBe('${env:HOST} $5 $ {x}');
});

test('a file loses its last line break and no more', () => {
  expect(interpolate('${file:x}', { env: {}, readFile: () => 'a\nb\n\r\n' }).value).toBe('a\nb\n');
});

test('the names that every object has are not variables', () => {
  expect(run('${env:toString}').findings).toHaveLength(1);
});

test('each reference that leads nowhere is a finding at its field', () => {
  const { findings } = run({ a: ['x', '${env:NONE}'], b: { c: '${file:/nowhere}${what}' } });

  expect(findings.map(({ path, what }) => [path, what])).toEqual([
    [['a', 1], 'the environment variable NONE is not set'],
    [['b', 'c'], 'the file /nowhere cannot be read (ENOENT)'],
    [['b', 'c'], 'after "${" expected env:NAME, env:NAME:-default or file:/path, came something else'],
  ]);
});

test('a value without a dollar passes unchanged', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      fc.pre(!JSON.stringify(value).includes('$'));
      expect(JSON.stringify(run(value).value)).toBe(JSON.stringify(value));
    }),
  );
});

function filled(text: string): unknown {
  const { value, findings } = run(text);
  expect(findings).toEqual([]);
  return value;
}

function run(value: unknown) {
  const readFile = (path: string) => {
    if (path === '/run/x') return 'in a file\n';
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  return interpolate(value, { env: ENV, readFile });
}

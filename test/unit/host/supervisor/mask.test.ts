import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { maskOf, NO_MASK } from '../../../../host/supervisor/mask.ts';
import { SPELLINGS } from './spellings.ts';

const CANARY = 'p@ss/wörd"\\+=% 1\'x?';

test.each(Object.entries(SPELLINGS))('a secret is taken out as %s, whatever stands around it', (_, spell) => {
  fc.assert(
    fc.property(secret(), fc.string(), fc.string(), (text, before, after) => {
      const said = before + spell(text) + after;

      const masked = maskOf([text])(said);

      expect(masked).toContain('***');
      expect(masked).not.toContain(spell(text));
    }),
    {
      examples: [
        [CANARY, '', ''],
        [CANARY, '\\', '\\'],
        [CANARY, '%', '%'],
        ["Zq7\\'aaaö", '', ''],
        ["Zq7\\\\'''a'\\b", "'", '\\'],
      ],
    },
  );
});

test('a secret is taken out of base64 at each of the three places where it can begin, also URL-safe', () => {
  const bytes = fc.uint8Array({ minLength: 3, maxLength: 12 });
  fc.assert(
    fc.property(secret(), bytes, bytes, fc.constantFrom('base64', 'base64url'), (text, before, after, alphabet) => {
      const whole = Buffer.concat([before, Buffer.from(text), after]);

      const masked = maskOf([text])(`token ${whole.toString(alphabet as 'base64')} end`);

      // What is left is what the neighbours share a character with: less than two bytes at each end.
      const left = masked.replace(/^token | end$/g, '').split('***');
      expect(left).toHaveLength(2);
      expect(Math.floor((left[0]!.length * 6) / 8)).toBeLessThanOrEqual(before.length + 1);
      expect(Math.floor((left[1]!.replace(/=+$/, '').length * 6) / 8)).toBeLessThanOrEqual(after.length + 1);
    }),
    { numRuns: 200 },
  );
});

test.each([
  ['postgres://u:s3cr3t%21@db/shop', 's3cr3t!'],
  ['postgres://u:s3cr3t%21@db/shop', 's3cr3t%21'],
  ['postgres://u:s3/cr3t@db/shop?application_name=a@b', 's3/cr3t'],
  ['postgres://u@db/shop?sslpassword=s3cr3t%21', 's3cr3t!'],
  ['kafka://u:s3cr3t@one,u:other@two', 's3cr3t'],
  ['host=db user=u password=s3cr3t', 's3cr3t'],
  ["host=db password='s3 cr3t' user=u", 's3 cr3t'],
  ['Server=db;Pwd=s3cr3t;Database=shop', 's3cr3t'],
])('the password in the address %s is a secret of its own: %s', (address, password) => {
  expect(maskOf([address])(`login of u failed: ${password}.`)).toBe('login of u failed: ***.');
});

test('a secret of several lines is taken out line by line, but for the borders of a key', () => {
  const key = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n';

  expect(maskOf([key])(key)).toBe('-----BEGIN PRIVATE KEY-----\n***\n***\n-----END PRIVATE KEY-----\n');
  expect(maskOf([key])(JSON.stringify({ key }))).not.toContain('MIIE');
});

test('of two secrets of which one holds the other, nothing is left', () => {
  expect(maskOf(['horse', 'correct horse battery'])('correct horse battery, horse')).toBe('***, ***');
});

test('a value too short to be a secret leaves the words of a line alone', () => {
  expect(maskOf(['', 'a'])).toBe(NO_MASK);
  expect(NO_MASK('a plain line', 'at its end')).toBe('a plain line');
});

test('what a cut leaves of a secret is taken out too, at the end and at the start of a text', () => {
  const spellings = Object.values(SPELLINGS);
  fc.assert(
    fc.property(secret(), fc.constantFrom(...spellings), fc.nat(), (text, spell, where) => {
      const said = spell(text);
      const at = 1 + (where % (said.length - 1));
      const mask = maskOf([text]);
      const shown = [
        mask(`words: ${said.slice(0, at)}`, 'at its end'),
        mask(`${said.slice(at)} words`, 'at its start'),
      ];

      // A spelling takes up to twelve characters for one; what is shorter than four characters of a secret may stay.
      for (const left of shown)
        expect(left.replaceAll('***', '').length).toBeLessThanOrEqual('words: '.length + 3 * 12);
      expect(shown.join()).not.toContain([...text].slice(0, 4).join(''));
    }),
    { numRuns: 300 },
  );
  const mask = maskOf(['correct horse']);
  expect(mask('a plain line', 'at its end')).toBe('a plain line');
  expect(mask('with correct ho', 'at its end')).toBe('with ***');
  expect(mask('rect horse and more', 'at its start')).toBe('*** and more');
});

test('no text makes it slow', () => {
  const mask = maskOf([
    CANARY,
    `${'\\'.repeat(40)}end`,
    `${'\\@'.repeat(20)}end`,
    `${"'".repeat(30)}end`,
    'k'.repeat(2_000),
  ]);
  const texts = [
    '\\'.repeat(16_384),
    'p@'.repeat(8_192),
    `p${'\\'.repeat(16_384)}@`,
    'k'.repeat(16_384),
    '%25'.repeat(5_000),
  ];

  const startedMs = performance.now();
  for (const text of texts) mask(text, 'at its end');

  expect(performance.now() - startedMs).toBeLessThan(2_000);
});

test('a secret of a thousand lines makes no text slow either', () => {
  const lines = Array.from({ length: 1_000 }, (_, n) => createHash('sha384').update(`${n}`).digest('base64'));
  const flood = 'INFO 2026-11-30 something happened in /usr/lib/x at line 1234 for user postgres\n'.repeat(200);

  const startedMs = performance.now();
  const mask = maskOf([lines.join('\n')]);
  for (let line = 0; line < 64; line++) mask(flood);

  expect(performance.now() - startedMs).toBeLessThan(5_000);
  expect(mask(`key: ${lines[500]}.`)).toBe('key: ***.');
});

/** Long enough that no neighbour and no escape holds it by chance; every kind of character that is spelled differently. */
function secret(): fc.Arbitrary<string> {
  const character = fc.oneof(
    fc.constantFrom(...'"\\/+=% \'@:?&#$<>!*()~\t'),
    fc.constantFrom('ö', '€', '日', '😀'),
    fc.constantFrom(...'abcXYZ019'),
  );
  return fc.array(character, { minLength: 4, maxLength: 20 }).map((middle) => `Zq7${middle.join('')}9xW`);
}

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const document = readFileSync(join(root, 'contract/CONTRACT.md'), 'utf8');
const clauses = [...document.matchAll(/^\*\*(?<id>\S+)\*\* (?<text>.*)$/gm)].map(({ groups }) => groups!);
const ids = clauses.map(({ id }) => id!);
const prefixes = new Set(ids.map((id) => id.split('-')[0]!));

test('every clause has a well-formed identifier and says something', () => {
  expect(clauses.filter(({ id, text }) => !/^[A-Z]{2,5}-[1-9]\d*$/.test(id!) || text!.length < 10)).toEqual([]);
  expect(ids.length).toBeGreaterThan(200);
});

test('every clause identifier is unique and no number is left out', () => {
  for (const prefix of prefixes) {
    const numbers = ids.filter((id) => id.startsWith(`${prefix}-`)).map((id) => Number(id.split('-')[1]));

    expect([prefix, numbers.toSorted((a, b) => a - b)]).toEqual([prefix, numbers.map((_, index) => index + 1)]);
  }
});

test('every rule of the document stands in a clause', () => {
  const rules = document.split('\n').filter((line) => /\b(MUST|SHOULD|MAY)\b/.test(line) && !line.includes('RFC 2119'));

  expect(rules.filter((line) => !/^(\*\*[A-Z]+-\d+\*\* |\| )/.test(line))).toEqual([]);
});

test('every action, extension, variable and metadata key of the registry is named in a clause', () => {
  const text = clauses.map((clause) => clause.text).join('\n');
  const headings = document.match(/^## .*$/gm)!.join('\n');
  const missing = ['actions', 'environment', 'metadata']
    .flatMap((name) => registry(name).map((entry) => entry.name!))
    .filter((name) => !text.includes(name));

  expect(missing).toEqual([]);
  expect(registry('extensions').filter(({ name }) => !headings.includes(`\`${name}\``))).toEqual([]);
});

test('every error code of the registry is in the document', () => {
  expect(registry('errors').filter(({ code }) => !document.includes(`\`${code}\``))).toEqual([]);
});

test('every extension says what repeating does and what is lost', () => {
  const groups = document.slice(document.indexOf('# Part B')).split(/^## /m);
  const extensions = groups.filter((group) => /^B\d+ `/.test(group));

  expect(extensions.length).toBeGreaterThan(9);
  expect(extensions.filter((group) => !/Request/.test(group) && !/takes/.test(group))).toEqual([]);
  expect(extensions.filter((group) => !/Repeating/.test(group))).toEqual([]);
  expect(extensions.filter((group) => !/Lost|loss/.test(group))).toEqual([]);
});

test('the generated tables are up to date with the registry', () => {
  expect(() =>
    execFileSync(process.execPath, ['scripts/generate.mjs', '--check'], { cwd: root, stdio: 'pipe' }),
  ).not.toThrow();
});

test('every clause that is cited in code exists', () => {
  const wrong = ['contract', 'sdk', 'host', 'drivers', 'test', 'scripts', 'docs']
    .flatMap((folder) => sources(join(root, folder)))
    .flatMap((file) => citations(readFileSync(file, 'utf8')).map((id) => `${file.slice(root.length)} cites ${id}`));

  expect(wrong).toEqual([]);
});

function citations(source: string): string[] {
  const cited = source.match(/\b[A-Z]{2,5}-\d+\b/g) ?? [];
  return cited.filter((id) => prefixes.has(id.split('-')[0]!) && !ids.includes(id));
}

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules' || entry.name === 'dist') return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return /\.(ts|mjs|js|proto|md)$/.test(entry.name) ? [path] : [];
  });
}

function registry(name: string): { name?: string; code?: string }[] {
  return JSON.parse(readFileSync(join(root, 'contract/registry', `${name}.json`), 'utf8'));
}

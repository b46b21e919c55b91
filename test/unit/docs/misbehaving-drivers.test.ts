import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CASES } from '../../integration/misbehaving/cases.ts';
import { root } from './documents.ts';

const folder = join(root, 'test/integration/misbehaving');
const tests = readdirSync(folder)
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(folder, name), 'utf8'))
  .join('\n');

test('every driver that misbehaves in the documentation is tried by a test, and is there', () => {
  const untried = CASES.filter(({ program }) => !tests.includes(`'${program}'`));
  const missing = CASES.filter(
    ({ program }) => program.endsWith('.mjs') && !existsSync(join(root, 'test/fixtures/drivers', program)),
  );

  expect(CASES.length).toBeGreaterThan(30);
  expect([untried, missing]).toEqual([[], []]);
});

test('no two cases have the same program, and every one that is refused or started again has a remedy', () => {
  const programs = CASES.map(({ program }) => program);
  const withoutRemedy = CASES.filter(({ host, remedy }) => /again|refused|paused/.test(host) && !remedy);

  expect(new Set(programs).size).toBe(programs.length);
  expect(withoutRemedy).toEqual([]);
});

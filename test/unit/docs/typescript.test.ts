import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { blocksOf, root } from './documents.ts';

test('the TypeScript that the documents show has no type error', () => {
  const blocks = blocksOf('ts');
  const folder = mkdtempSync(join(tmpdir(), 'urutau-docs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const [index, { block }] of blocks.entries()) writeFileSync(join(folder, `example-${index + 1}.ts`), block);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.base.json'),
      compilerOptions: { composite: false, declaration: false, emitDeclarationOnly: false, noEmit: true },
      include: ['*.ts'],
    }),
  );

  expect(blocks.length).toBeGreaterThan(1);
  expect(typeErrors(folder)).toBe('');
}, 60_000);

function typeErrors(folder: string): string {
  try {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], { stdio: 'pipe' });
    return '';
  } catch (error) {
    return String((error as { stdout: Buffer }).stdout);
  }
}

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseManifest } from '../../../host/driver-packages/manifest.ts';
import { loadPipeline } from '../../../host/spec/load.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const documents = markdownIn(root).map((path) => ({ path: relative(root, path), text: readFileSync(path, 'utf8') }));

test('every relative link of a document leads to a file', () => {
  const broken = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(#[^)]*)?\)/g)]
      .map(([, target]) => target!)
      .filter((target) => !existsSync(join(root, dirname(path), target)))
      .map((target) => `${path} -> ${target}`),
  );

  expect(broken).toEqual([]);
});

const env = { SOURCE_URI: 'postgres://me@localhost/shop', SINK_URI: 'postgres://me@localhost/copy' };
const pipelines = blocks('yaml').filter(({ block }) => /^pipeline:/m.test(block));

test.each(pipelines)('the pipeline that $path shows is valid', ({ block }) => {
  const { warnings } = loadPipeline('/example/pipeline.yaml', { env, readFile: () => block });

  expect(warnings).toEqual([]);
});

const manifests = blocks('yaml').filter(({ block }) => /^# plugin.yaml/.test(block));

test.each(manifests)('the manifest that $path shows is valid', ({ block }) => {
  expect(parseManifest(block, 'plugin.yaml').roles).toEqual(['sink']);
});

test('the documents show at least one pipeline and one manifest', () => {
  expect([pipelines.length > 0, manifests.length > 0]).toEqual([true, true]);
});

function blocks(language: string): { path: string; block: string }[] {
  return documents.flatMap(({ path, text }) =>
    [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, block]) => ({
      path,
      block: block!,
    })),
  );
}

function markdownIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules' || entry.name === 'dist' || entry.name.startsWith('.')) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return markdownIn(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

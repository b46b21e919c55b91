import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseManifest } from '../../../host/driver-packages/manifest.ts';
import { loadPipeline } from '../../../host/spec/load.ts';
import { notCarriedOut } from '../../../host/spec/not-carried-out.ts';
import { blocksOf, documents, root } from './documents.ts';

test('every relative link of a document leads to a file, and to a heading in it', () => {
  const broken = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(#[^)]*)?\)/g)]
      .filter(([, target, heading]) => !leadsSomewhere(path, target!, heading))
      .map(([, target, heading = '']) => `${path} -> ${target}${heading}`),
  );

  expect(broken).toEqual([]);
});

test('every path that a table or sentence names in backticks exists', () => {
  const missing = documents
    .filter(({ path }) => !path.startsWith('docs/decisions/'))
    .flatMap(({ path, text }) =>
      [...withoutBlocks(text).matchAll(/`((?:host|sdk|drivers|contract|test|scripts|docs)\/[\w./*-]*)`/g)]
        .map(([, named]) => named!)
        .filter((named) => !named.includes('*') && !existsSync(join(root, named)))
        .map((named) => `${path}: ${named}`),
    );

  expect(missing).toEqual([]);
});

const env = {
  SOURCE_URI: 'postgres://me@localhost/shop',
  SINK_URI: 'postgres://me@localhost/copy',
  URUTAU_SOURCE_URI: 'postgres://me@localhost/shop',
  URUTAU_SINK_URI: 'postgres://me@localhost/copy',
};

/** Parts of a pipeline file stand in one that is otherwise complete. */
const REST = {
  pipeline: 'rest',
  source: { kind: 'postgres', uri: env.SOURCE_URI, slotName: 'rest' },
  sink: { type: 'stdout' },
  tables: [{ source: 'public.orders', target: 'orders' }],
};
const isPipeline = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).some((field) => field in REST || field === 'supervision');
const pipelines = blocksOf('yaml')
  .filter(({ block }) => isPipeline(parse(block)))
  .map(({ path, block }) => ({
    path,
    block: /^pipeline:/m.test(block) ? block : JSON.stringify({ ...REST, ...parse(block) }),
  }));

test.each(pipelines)('the pipeline that $path shows is valid, and run carries out all of it', ({ block }) => {
  const { pipeline, warnings } = loadPipeline('/example/pipeline.yaml', { env, readFile: () => block });

  expect([warnings, notCarriedOut(pipeline)]).toEqual([[], []]);
});

const manifests = blocksOf('yaml').filter(({ block }) => /^# plugin.yaml/.test(block));

test.each(manifests)('the manifest that $path shows is valid', ({ block }) => {
  expect(parseManifest(block, 'plugin.yaml').roles).toEqual(['sink']);
});

test.each(blocksOf('yaml'))('the YAML that $path shows can be read', ({ block }) => {
  expect(() => parse(block)).not.toThrow();
});

test.each(blocksOf('json'))('the JSON that $path shows can be read', ({ block }) => {
  const isLines = block
    .trim()
    .split('\n')
    .every((line) => line.startsWith('{') && line.endsWith('}'));
  // CONTRACT.md shows which fields there are, not one message.
  const texts = isLines ? block.trim().split('\n') : [block];

  for (const text of texts) expect(() => JSON.parse(text)).not.toThrow();
});

test('the documents show pipelines, a manifest and JSON at all', () => {
  expect([pipelines.length > 5, manifests.length, blocksOf('json').length > 3]).toEqual([true, 1, true]);
});

test('every page of docs is in its list, and every decision has its three parts', () => {
  const list = readFileSync(join(root, 'docs/README.md'), 'utf8');
  const unlisted = readdirSync(join(root, 'docs')).filter(
    (name) => name.endsWith('.md') && name !== 'README.md' && !list.includes(`](${name})`),
  );
  const incomplete = documents.filter(
    ({ path, text }) =>
      /^docs\/decisions\/\d/.test(path) &&
      !['**Context.**', '**Decision.**', '**Consequences.**'].every((part) => text.includes(part)),
  );

  expect([unlisted, incomplete.map(({ path }) => path)]).toEqual([[], []]);
});

function leadsSomewhere(path: string, target: string, heading: string | undefined): boolean {
  const file = target === '' ? join(root, path) : join(root, dirname(path), target);
  if (!existsSync(file)) return false;
  if (heading === undefined) return true;
  const page = documents.find((document) => document.path === relative(root, file));
  return page === undefined || headingsOf(page.text).includes(heading.slice(1));
}

/** As a page shows them in its address. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

function withoutBlocks(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, '');
}

// Writes contract/schemas/pipeline.schema.json, which editors use, from the host's own schema of a pipeline file.
// `--check` writes nothing and fails when the file is not what would be written.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const file = join(root, 'contract/schemas/pipeline.schema.json');
const { outputFiles } = await build({
  entryPoints: [join(root, 'host/spec/json-schema.ts')],
  bundle: true,
  platform: 'node',
  format: 'esm',
  conditions: ['urutau-source'],
  write: false,
});
const bundle = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`;
const { pipelineJsonSchema } = await import(bundle);
const text = `${JSON.stringify(pipelineJsonSchema(), null, 2)}\n`;

if (!process.argv.includes('--check')) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
} else if (present() !== text) {
  console.error(
    'contract/schemas/pipeline.schema.json is not up to date; run `node scripts/generate-pipeline-schema.mjs`',
  );
  process.exit(1);
}

function present() {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from './documents.ts';

test('the page of the pipeline file lists the fields that run refuses, as the host has them', () => {
  const rows = refusedSoFar().map(
    ({ field, unless = [], reason }) =>
      `| \`${field.replaceAll('.*.', '[].')}\` | ${unless.map((value) => `\`${value}\``).join(', ')} | ${reason} |`,
  );
  const page = readFileSync(join(root, 'docs/pipeline-file.md'), 'utf8');

  const table = page.split('## Refused so far')[1]!.match(/^\| `.*$/gm);

  expect(table).toEqual(rows);
});

interface Refused {
  field: string;
  unless?: unknown[];
  reason: string;
}

/** The host keeps the list to itself. Its literals are YAML too. */
function refusedSoFar(): Refused[] {
  const source = readFileSync(join(root, 'host/spec/not-carried-out.ts'), 'utf8');
  return parse(/NOT_CARRIED_OUT: readonly NotCarriedOut\[\] = (\[[\s\S]*?\n\]);/.exec(source)![1]!);
}

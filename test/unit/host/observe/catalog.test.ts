import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { METRICS } from '../../../../host/observe/catalog.ts';

test('the page of metrics lists the catalogue as it is', () => {
  const page = readFileSync(new URL('../../../../docs/metrics.md', import.meta.url), 'utf8');

  const rows = page.split('\n').filter((line) => line.startsWith('| `urutau_'));

  expect(rows).toEqual(
    Object.values(METRICS).map(
      ({ name, type, labels, help }) =>
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
    ),
  );
});

test('names, labels and words are such as a scraper takes', () => {
  for (const { name, type, labels, help } of Object.values(METRICS)) {
    expect(name).toMatch(/^urutau_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
    for (const label of labels) expect(label).toMatch(/^[a-z]+$/);
    expect(help).toMatch(/^[^"\\\n]+\.$/);
  }
});

// Writes the tables of docs/misbehaving-drivers.md from the cases that the tests try.
// `--check` writes nothing and fails when the page is not what would be written.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const page = join(root, 'docs/misbehaving-drivers.md');
const cases = JSON.parse(readFileSync(join(root, 'test/integration/misbehaving/cases.json'), 'utf8'));
const old = readFileSync(page, 'utf8');
const text = old.replace(/<!-- generated:(.+) -->[\s\S]*?<!-- \/generated -->/g, (_, group) =>
  [`<!-- generated:${group} -->`, ...table(group), '<!-- /generated -->'].join('\n'),
);

if (!process.argv.includes('--check')) {
  writeFileSync(page, text);
} else if (old !== text) {
  console.error('docs/misbehaving-drivers.md is not up to date; run `node scripts/generate-misbehaving-drivers.mjs`');
  process.exit(1);
}

function table(group) {
  const rows = cases.filter((one) => one.group === group);
  if (rows.length === 0) throw new Error(`there is no case of the group ${group}`);
  return [
    '| program | a driver that … | … | what is printed |',
    '| --- | --- | --- | --- |',
    ...rows.map(({ program, driver, host, prints, remedy }) => {
      const printed = prints === '' ? 'nothing' : prints;
      const all = remedy === undefined ? printed : `${printed}<br>*${remedy}*`;
      return `| ${[program, driver, host, all].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
    }),
  ];
}

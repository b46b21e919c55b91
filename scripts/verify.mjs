// `npm run verify`: everything that must hold before a change lands. It runs every part, whatever fails, and counts.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { postgresUnavailable } from './embedded-postgres.mjs';
import { fetchPackage } from './package-cache.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const SMOKE_NODES = { 22: '22.23.5', 24: '24.22.3' };
const BIOME = 'node_modules/@biomejs/biome/bin/biome';
const TSC = 'node_modules/typescript/bin/tsc';
const VITEST = 'node_modules/vitest/vitest.mjs';
/** Lines that tests leave by test/figures.ts. */
const FIGURES = join(root, '.cache/figures.jsonl');

let current;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    current?.kill(signal);
    process.exit(1);
  });
}

/** A part resolves to what it counted. `blocked` says why it cannot run here: it then counts as skipped. */
const parts = [
  { title: 'install', run: () => check(['scripts/install.mjs']) },
  { title: 'build', run: () => check(['scripts/build.mjs']) },
  { title: 'lint', run: () => check([BIOME, 'check', '--error-on-warnings', '.']) },
  { title: 'types', run: () => check([TSC, '-b']) },
  { title: 'generated files', run: () => checks(generators().map((script) => [script, '--check'])) },
  { title: 'unit and layering tests', run: () => tests('unit') },
  { title: 'integration tests', blocked: postgresUnavailable(), run: () => tests('integration') },
  ...(process.argv.includes('--long')
    ? [{ title: 'long tests', blocked: postgresUnavailable(), run: () => tests('long') }]
    : []),
  { title: 'quickstart', blocked: postgresUnavailable(), run: () => check(['scripts/quickstart.mjs']) },
  ...Object.entries(SMOKE_NODES).map(([major, version]) => ({
    title: `smoke on Node ${major}`,
    blocked: process.platform === 'linux' ? postgresUnavailable() : `no Node package for ${process.platform}`,
    run: () => smoke(version),
  })),
];

await main();

async function main() {
  const startMs = performance.now();
  rmSync(FIGURES, { force: true });
  const results = [];
  for (const [index, part] of parts.entries()) {
    console.log(`\n── ${index + 1}/${parts.length} ${part.title}`);
    const partStartMs = performance.now();
    const counts = part.blocked ? skipped(part) : await runPart(part);
    const seconds = (performance.now() - partStartMs) / 1000;
    results.push({ title: part.title, ...counts, seconds });
    console.log(`── ${part.title}: ${countsInWords(counts)} in ${seconds.toFixed(1)} s`);
  }
  printTable(results, (performance.now() - startMs) / 1000);
  printFigures();
  const total = sum(results);
  console.log(countsInWords(total));
  process.exitCode = total.failed > 0 || total.tests === 0 ? 1 : 0;
}

async function runPart({ title, run }) {
  try {
    return await run();
  } catch (error) {
    console.error(`${title}: ${error.message}`);
    return counted({ failed: 1 });
  }
}

function skipped({ title, blocked }) {
  console.log(`${title} is skipped: ${blocked}`);
  return counted({ skipped: 1 });
}

/** One command of Node, which is one check. */
async function check(args, node = process.execPath) {
  const ended = await runCommand(node, args);
  if (ended === 0) return counted({ passed: 1 });
  console.error(`failed with ${ended}: node ${args.join(' ')}`);
  return counted({ failed: 1 });
}

async function checks(commands, node) {
  const results = [];
  for (const args of commands) results.push(await check(args, node));
  return sum(results);
}

function generators() {
  const names = readdirSync(join(root, 'scripts')).filter((name) => /^generate.*\.mjs$/.test(name));
  return names.sort().map((name) => `scripts/${name}`);
}

async function tests(project) {
  const report = join(root, `.cache/vitest-${project}.json`);
  mkdirSync(dirname(report), { recursive: true });
  rmSync(report, { force: true });
  const args = [
    VITEST,
    'run',
    '--project',
    project,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ];
  const ended = await runCommand(process.execPath, args);
  if (!existsSync(report)) throw new Error(`vitest ended with ${ended} and left no report`);
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  // A file that cannot be loaded has no tests to fail.
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  ).length;
  const failed = numFailedTests + broken;
  for (const { fullName, status } of testResults.flatMap((file) => file.assertionResults)) {
    if (status === 'pending' || status === 'skipped') console.log(`skipped: ${fullName}`);
  }
  // An error outside of any test fails the run and no test.
  const stray = ended !== 0 && failed === 0 ? 1 : 0;
  return counted({
    passed: numPassedTests,
    failed: failed + stray,
    skipped: numPendingTests + numTodoTests,
    tests: numPassedTests + numFailedTests,
  });
}

async function smoke(version) {
  const node = join(await fetchPackage(`node-linux-${process.arch}`, version, keepProgram), 'bin/node');
  return await checks([['host/dist/main.js', 'version'], ['scripts/smoke.mjs']], node);
}

/** Headers and manuals are most of the package. */
function keepProgram(unpacked) {
  for (const name of readdirSync(unpacked)) {
    if (name !== 'bin' && name !== 'LICENSE') rmSync(join(unpacked, name), { recursive: true });
  }
}

/** Resolves with the exit code, or with the signal that ended it. */
async function runCommand(command, args) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  current = child;
  const [code, signal] = await new Promise((done, fail) =>
    child.once('error', fail).once('exit', (...end) => done(end)),
  );
  current = undefined;
  return code ?? signal;
}

function counted(counts) {
  return { passed: 0, failed: 0, skipped: 0, tests: 0, ...counts };
}

function sum(results) {
  const total = counted({});
  for (const result of results) for (const key of Object.keys(total)) total[key] += result[key];
  return total;
}

function countsInWords({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function printFigures() {
  if (!existsSync(FIGURES)) return;
  const figures = readFileSync(FIGURES, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  figures.sort((a, b) => a.what.localeCompare(b.what));
  for (const { what, text } of figures) console.log(`${what}: ${text}`);
  console.log('');
}

function printTable(results, totalSeconds) {
  const rows = [...results, { title: 'all', ...sum(results), seconds: totalSeconds }].map((result) => [
    result.title,
    String(result.passed),
    String(result.failed),
    String(result.skipped),
    `${result.seconds.toFixed(1)} s`,
    `${Math.round((100 * result.seconds) / totalSeconds)} %`,
  ]);
  const table = [['part', 'passed', 'failed', 'skipped', 'time', 'share'], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  console.log('');
  for (const row of table) {
    console.log(
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
        .join('  '),
    );
  }
  console.log('');
}

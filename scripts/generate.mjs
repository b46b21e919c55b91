// Writes what is made from contract/registry: contract/ts/registry.ts, the tables of contract/CONTRACT.md, and the list
// of docs/fault-points.md.
// `--check` writes nothing and fails when a file is not what would be written.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const registry = (name) => JSON.parse(readFileSync(join(root, 'contract/registry', `${name}.json`), 'utf8'));
const actions = registry('actions');
const extensions = registry('extensions');
const errors = registry('errors');
const limits = registry('limits');
const environment = registry('environment');
const metadata = registry('metadata');
const faultPoints = registry('fault-points');

const stale = [];
emit('contract/ts/registry.ts', registrySource());
emit('contract/CONTRACT.md', withTables('contract/CONTRACT.md', contractTables()));
emit('docs/fault-points.md', withTables('docs/fault-points.md', faultTables()));
if (stale.length > 0) {
  console.error(`not up to date with contract/registry: ${stale.join(', ')}; run \`npm run generate\``);
  process.exit(1);
}

function emit(path, text) {
  const file = join(root, path);
  let present = '';
  try {
    present = readFileSync(file, 'utf8');
  } catch {
    // The file is new.
  }
  if (present === text) return;
  if (process.argv.includes('--check')) stale.push(relative(root, file));
  else writeFileSync(file, text);
}

function registrySource() {
  const entries = (list, key, value) => list.map((item) => `  ${key(item)}: ${value(item)},`).join('\n');
  const quoted = (text) => `'${text.replaceAll("'", "\\'")}'`;
  const withDoc = (list, value) =>
    list.map((item) => `  /** ${item.summary} */\n  ${item.id}: ${value(item)},`).join('\n');
  const faultEntry = (f) => {
    const action = f.action === undefined ? 'null' : quoted(actions.find((a) => a.id === f.action).name);
    return `{ kind: ${quoted(f.kind)}, action: ${action} }`;
  };
  const errorEntry = (e) => `{ grpc: ${quoted(e.grpc)}, retry: ${quoted(e.retry)}, remedy: ${quoted(e.remedy)} }`;
  return `// Generated from contract/registry by \`npm run generate\`. Do not edit.

/** Names of the Flight actions. */
export const ACTION = {
${withDoc(actions, (a) => quoted(a.name))}
} as const;
export type ActionName = (typeof ACTION)[keyof typeof ACTION];

/** Names of the extensions that a driver may announce. */
export const EXTENSION = {
${withDoc(extensions, (e) => quoted(e.name))}
} as const;
export type ExtensionName = (typeof EXTENSION)[keyof typeof EXTENSION];

/** Environment variables that the host sets for a driver. */
export const ENV = {
${withDoc(environment, (e) => quoted(e.name))}
} as const;

/** Keys of Arrow schema and field metadata. */
export const METADATA = {
${withDoc(metadata, (m) => quoted(m.name))}
} as const;

/** Sizes, counts and times of the contract; the unit is in each name. */
export const LIMIT = {
${withDoc(limits, (l) => l.value.toString().replace(/\B(?=(\d{3})+$)/g, '_'))}
} as const;

export type GrpcStatusName =
  | 'INVALID_ARGUMENT'
  | 'FAILED_PRECONDITION'
  | 'NOT_FOUND'
  | 'ABORTED'
  | 'UNAVAILABLE'
  | 'UNAUTHENTICATED'
  | 'INTERNAL';

/** What a caller may do after an error. */
export type Retry = 'never' | 'reopen' | 'reassign' | 'backoff' | 'restart';

/** The closed list of error codes: the gRPC status each travels with, what may be tried, and the remedy. */
export const ERRORS = {
${entries(errors, (e) => quoted(e.code), errorEntry)}
} as const satisfies Record<string, { grpc: GrpcStatusName; retry: Retry; remedy: string }>;
export type ErrorCode = keyof typeof ERRORS;

/** Places in a process's work at which a test may let it fail, and what each is: a step, an answer or a stream. */
export const FAULT_POINTS = {
${entries(faultPoints, (f) => quoted(f.name), faultEntry)}
} as const satisfies Record<string, { kind: 'step' | 'reply' | 'stream'; action: ActionName | null }>;
export type FaultPoint = keyof typeof FAULT_POINTS;

export const PROTOCOL_VERSION = 1;
`;
}

function contractTables() {
  return {
    actions: table(
      ['action', 'part', 'extension', 'source', 'sink', 'what'],
      actions.map((a) => [code(a.name), a.part, a.extension ? code(a.extension) : '', a.source, a.sink, a.summary]),
    ),
    extensions: table(
      ['extension', 'role', 'what'],
      extensions.map((e) => [code(e.name), e.role, e.summary]),
    ),
    errors: table(
      ['code', 'gRPC status', 'retry', 'remedy'],
      errors.map((e) => [code(e.code), code(e.grpc), e.retry, e.remedy]),
    ),
    limits: table(
      ['limit', 'value', 'unit', 'what'],
      limits.map((l) => [code(l.id), String(l.value), l.unit, l.summary]),
    ),
    environment: table(
      ['variable', 'part', 'required', 'value'],
      environment.map((e) => [code(e.name), e.part, e.required ? 'yes' : 'no', e.summary]),
    ),
    metadata: table(
      ['key', 'on', 'value'],
      metadata.map((m) => [code(m.name), m.on, m.summary]),
    ),
  };
}

/** A table for each kind of process. */
function faultTables() {
  const of = (process) =>
    table(
      ['point', 'kind', 'what is done when it comes there'],
      faultPoints.filter((f) => f.name.startsWith(`${process}.`)).map((f) => [code(f.name), f.kind, f.summary]),
    );
  return { source: of('source'), sink: of('sink'), host: of('host') };
}

function withTables(path, tables) {
  return Object.entries(tables).reduce(
    (text, [name, body]) => {
      const pattern = new RegExp(`(<!-- generated:${name} -->\n)[\\s\\S]*?(<!-- /generated -->)`);
      if (!pattern.test(text)) throw new Error(`${path} has no place for the table ${name}`);
      return text.replace(pattern, (_all, open, close) => `${open}${body}\n${close}`);
    },
    readFileSync(join(root, path), 'utf8'),
  );
}

function code(text) {
  return `\`${text}\``;
}

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

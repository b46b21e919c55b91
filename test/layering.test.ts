import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('every import keeps to its layer', () => {
  const sources = readSources();

  expect(sources.size).toBeGreaterThan(0);
  expect(breaches(sources)).toEqual([]);
});

test('the guard says each kind of breach in words', () => {
  const fabricated: Record<string, string> = {
    'drivers/postgres/source/pgoutput.ts': "import { read } from '../../../host/flight/client.ts';",
    'drivers/postgres/sink/merge.ts': "export type { A } from '@urutau/contract';",
    'drivers/stdout/sink/main.ts': "import {\n  lsn,\n} from '../../postgres/lsn.ts';",
    'drivers/stdout/sink/client.ts': "const pg = await import('pg');",
    'host/pipeline/relay.ts': "import { serve } from '@urutau/sdk';",
    'host/pipeline/commit.ts': "import grpc from '@grpc/grpc-js';",
    'host/pipeline/confirm.ts': "import 'execa';",
    'sdk/typescript/lifecycle.ts': "import type { Flight } from 'urutau-host';",
    'sdk/typescript/config.ts': "import { UrutauError } from '../../contract/ts/index.ts';",
    'contract/ts/registry.ts': "import { readFileSync } from 'node:fs';",
    'conformance/check.ts': "import { ERRORS } from '../contract/ts/registry.ts';",
    'host/spec/utils.ts': '',
    'sdk/typescript/helpers/log.ts': '',
  };

  expect(breaches(new Map(Object.entries(fabricated)))).toEqual([
    'drivers/postgres/source/pgoutput.ts -> host/flight/client.ts: drivers/postgres may import only sdk',
    'drivers/postgres/sink/merge.ts -> @urutau/contract: drivers/postgres may import only sdk',
    'drivers/stdout/sink/main.ts -> drivers/postgres/lsn.ts: drivers/stdout may import only sdk',
    'drivers/stdout/sink/client.ts -> pg: a database client belongs in drivers/postgres',
    'host/pipeline/relay.ts -> @urutau/sdk: host may import only contract',
    'host/pipeline/commit.ts -> @grpc/grpc-js: gRPC belongs in sdk/typescript/flight, host/flight or conformance/probe',
    'host/pipeline/confirm.ts -> execa: only a file named spawn.ts or main.ts starts processes',
    'sdk/typescript/lifecycle.ts -> urutau-host: sdk may import only contract',
    'sdk/typescript/config.ts -> contract/ts/index.ts: another package is imported by its name',
    'contract/ts/registry.ts -> node:fs: contract does no input or output',
    'conformance/check.ts -> contract/ts/registry.ts: conformance may import nothing of ours',
    'host/spec/utils.ts: "utils" names no idea; name the file after what it does',
    'sdk/typescript/helpers/log.ts: "helpers" names no idea; name the file after what it does',
  ]);
});

test('the guard lets through what is allowed', () => {
  const fabricated: Record<string, string> = {
    'drivers/postgres/source/slot.ts':
      "import { UrutauError } from '@urutau/sdk';\nimport pg from 'pg';\nimport { lsn } from '../lsn.ts';",
    'host/flight/client.ts': "import grpc from '@grpc/grpc-js';\nimport { ACTION } from '@urutau/contract';",
    'host/supervisor/spawn.ts': "import { execa } from 'execa';",
    'sdk/typescript/flight/server.ts':
      "import * as grpc from '@grpc/grpc-js';\n// import { nothing } from 'urutau-host';",
    'contract/ts/change-batch.ts':
      "import type { Schema } from 'apache-arrow';\nconst text = 'import it from the host';",
    'conformance/runner.ts': "import errors from '../contract/registry/errors.json' with { type: 'json' };",
  };

  expect(breaches(new Map(Object.entries(fabricated)))).toEqual([]);
});

/** What each package may import of the others. Each driver vendor is a package, so that vendors cannot see each other. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  contract: [],
  sdk: ['contract'],
  drivers: ['sdk'],
  host: ['contract'],
  conformance: [],
};

const WORKSPACE_NAMES: Record<string, string> = {
  '@urutau/contract': 'contract',
  '@urutau/sdk': 'sdk',
  'urutau-host': 'host',
  'urutau-conformance': 'conformance',
};

const GRPC_FOLDERS = ['sdk/typescript/flight', 'host/flight', 'conformance/probe'];

const CLIENT_VENDORS: Record<string, string> = {
  pg: 'postgres',
  'pg-connection-string': 'postgres',
  'pg-copy-streams': 'postgres',
  'pg-protocol': 'postgres',
  'pg-types': 'postgres',
  postgres: 'postgres',
  mysql: 'mysql',
  mysql2: 'mysql',
  mariadb: 'mysql',
  zongji: 'mysql',
  '@vlasky/zongji': 'mysql',
  kafkajs: 'kafka',
  '@platformatic/kafka': 'kafka',
  '@clickhouse/client': 'clickhouse',
  couchbase: 'couchbase',
};

const NAMES_WITHOUT_IDEA = ['util', 'utils', 'helper', 'helpers', 'common', 'misc', 'shared'];

/** Node's modules that only compute. */
const PURE_MODULES = ['assert', 'buffer', 'crypto', 'util'];

/** `path -> import: reason`, one for each breach. Paths are relative to the repository, with slashes. */
function breaches(sources: ReadonlyMap<string, string>): string[] {
  return [...sources].flatMap(([path, text]) => [
    ...nameBreaches(path),
    ...importsOf(text).flatMap((specifier) => {
      const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier;
      const reason = importBreach(path, target, specifier.startsWith('.'));
      return reason === undefined ? [] : [`${path} -> ${target}: ${reason}`];
    }),
  ]);
}

function nameBreaches(path: string): string[] {
  const names = path.split('/').map((part) => part.replace(/\.ts$/, ''));
  return names
    .filter((name) => NAMES_WITHOUT_IDEA.includes(name))
    .map((name) => `${path}: "${name}" names no idea; name the file after what it does`);
}

/** Specifiers of imports, re-exports, dynamic imports, import types and `require`. Comments do not count. */
function importsOf(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const statement = /^\s*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*(['"])([^'"\n]+)\1/gm;
  const call = /\b(?:import|require)\s*\(\s*(['"])([^'"\n]+)\1/g;
  return [statement, call].flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[2] as string));
}

function importBreach(path: string, target: string, relative: boolean): string | undefined {
  const owner = ownerOfFile(path);
  const package_ = packageName(target);
  const imported = relative ? ownerOfFile(target) : ownerOfPackage(package_);
  if (imported !== undefined) {
    if (imported === owner || isDataForConformance(owner, target)) return undefined;
    const allowed = MAY_IMPORT[owner.replace(/\/.*/, '')] ?? [];
    if (!allowed.includes(imported))
      return `${owner} may import ${allowed.length === 0 ? 'nothing of ours' : `only ${allowed.join(', ')}`}`;
    return relative ? 'another package is imported by its name' : undefined;
  }
  if (package_.startsWith('@grpc/') && !GRPC_FOLDERS.some((folder) => path.startsWith(`${folder}/`))) {
    return 'gRPC belongs in sdk/typescript/flight, host/flight or conformance/probe';
  }
  const vendor = CLIENT_VENDORS[package_];
  if (vendor !== undefined && owner !== `drivers/${vendor}`) return `a database client belongs in drivers/${vendor}`;
  const module = package_.replace(/^node:/, '');
  if (['child_process', 'execa'].includes(module) && !['spawn.ts', 'main.ts'].includes(basename(path))) {
    return 'only a file named spawn.ts or main.ts starts processes';
  }
  if (owner === 'contract' && builtinModules.includes(module) && !PURE_MODULES.includes(module))
    return 'contract does no input or output';
  return undefined;
}

/** `drivers/postgres` for a driver, the top-level folder for anything else. */
function ownerOfFile(path: string): string {
  const [top = '', vendor = ''] = path.split('/');
  return top === 'drivers' ? `${top}/${vendor}` : top;
}

function ownerOfPackage(name: string): string | undefined {
  const driver = /^@urutau\/driver-(.+)$/.exec(name);
  return driver ? `drivers/${driver[1]}` : WORKSPACE_NAMES[name];
}

/** `@scope/name` of `@scope/name/path`. */
function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The judge reads what the contract says, and not the code that the parties use. */
function isDataForConformance(owner: string, target: string): boolean {
  return (
    owner === 'conformance' &&
    target.startsWith('contract/') &&
    !target.startsWith('contract/ts/') &&
    !target.endsWith('.ts')
  );
}

function readSources(): Map<string, string> {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..');
  const sources = new Map<string, string>();
  function visit(folder: string): void {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory() && !['node_modules', 'dist'].includes(entry.name)) visit(path);
      else if (entry.isFile() && entry.name.endsWith('.ts')) sources.set(path, readFileSync(join(root, path), 'utf8'));
    }
  }
  const present = readdirSync(root);
  for (const top of Object.keys(MAY_IMPORT).filter((name) => present.includes(name))) visit(top);
  return sources;
}

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { checkSchema } from './check-schema.ts';
import { closest } from './did-you-mean.ts';
import { fillFromEnvironment } from './fill-from-environment.ts';
import { interpolate } from './interpolate.ts';
import { parseDocument } from './parse-document.ts';
import { type Path, renderPath, replaced, valueAt } from './path.ts';
import type { Pipeline } from './pipeline.ts';
import { type Finding, type Problem, placed, SpecError } from './problem.ts';
import { resolvePipeline } from './resolve.ts';
import { RULES } from './rules/all.ts';
import type { Rule, Subject } from './rules/rule.ts';
import { warnings } from './rules/warnings.ts';
import type { PipelineFile } from './schema/pipeline-file.ts';
import { SINK_TYPES } from './schema/sink.ts';
import { SOURCE_KINDS } from './schema/source.ts';
import { sealed } from './secrets.ts';
import { showing } from './show.ts';

export interface LoadOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a text file by its absolute path. */
  readonly readFile?: (path: string) => string;
  /** Driver folders that take the place of the file's drivers. */
  readonly sourcePlugin?: string;
  readonly sinkPlugin?: string;
}

export interface LoadedPipeline {
  readonly pipeline: Pipeline;
  readonly warnings: readonly Problem[];
}

/** Reads and checks a pipeline file. Throws a `SpecError` that holds every problem at once. */
export function loadPipeline(path: string, options: LoadOptions): LoadedPipeline {
  const { env, readFile = readText } = options;
  const directory = dirname(resolve(path));
  const document = parseDocument(readPipelineFile(path, readFile));
  const place = (findings: readonly Finding[]) =>
    placed(findings, {
      file: path,
      locate: ({ path, offset, atKey }) =>
        offset === undefined ? document.places.locate(path, { atKey }) : document.places.at(offset),
    });
  if (document.value === undefined) {
    throw new SpecError(place(document.findings.length > 0 ? document.findings : [EMPTY]));
  }

  const outside = interpolate(document.value, { env, readFile: (name) => readFile(resolve(directory, name)) });
  const value = fillFromEnvironment(withSinkType(outside.value, options), env);
  const show = showing(value, outside.written);
  const { draft, findings: schemaFindings } = checkSchema(withoutUnread(value, outside.findings), { ...outside, show });
  const subject: Subject = { file: draft, source: sourceKind(value, options), sink: sinkType(value, options), show };
  const problems = [
    ...document.findings,
    ...unrepeated([...outside.findings, ...schemaFindings, ...apply(RULES, subject)]),
  ];
  if (problems.length > 0) throw new SpecError(place(problems));

  const secretByOrigin = (path: Path) => path[1] === 'config' && outside.written.has(renderPath(path));
  const pipeline = resolvePipeline(sealed(draft as PipelineFile, secretByOrigin), {
    file: path,
    directory,
    sourcePlugin: options.sourcePlugin && resolve(options.sourcePlugin),
    sinkPlugin: options.sinkPlugin && resolve(options.sinkPlugin),
    locate: (path) => document.places.locate(path),
  });
  return { pipeline, warnings: place(apply([warnings], subject)) };
}

const EMPTY: Finding = {
  path: [],
  what: 'expected a map with pipeline, source, sink and tables, came nothing',
  remedy: 'write them, or let `urutau-host init` write a first file',
};

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

function readPipelineFile(path: string, readFile: (path: string) => string): string {
  try {
    return readFile(resolve(path));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    const what = `the pipeline file cannot be read (${code})`;
    throw new SpecError([
      { file: path, line: 1, column: 1, path: '', what, remedy: 'check the path and that this user may read it' },
    ]);
  }
}

function withSinkType(value: unknown, { sinkPlugin }: LoadOptions): unknown {
  const sink = valueAt(value, ['sink']);
  if (sinkPlugin !== undefined || typeof sink !== 'object' || sink === null) return value;
  // With a misspelled type the default would bring problems of a sink that nobody meant.
  const chosen = Object.keys(sink).some((field) => field === 'driver' || field === 'kind' || closest(field, ['type']));
  return chosen ? value : replaced(value, ['sink', 'type'], 'iceberg+rest');
}

// A field whose reference led nowhere has its problem already.
function withoutUnread(value: unknown, findings: readonly Finding[]): unknown {
  return findings.reduce((rest, { path }) => replaced(rest, path, undefined), value);
}

function sourceKind(value: unknown, { sourcePlugin }: LoadOptions): Subject['source'] {
  return choose(SOURCE_KINDS, valueAt(value, ['source', 'kind']), [valueAt(value, ['source', 'driver']), sourcePlugin]);
}

function sinkType(value: unknown, { sinkPlugin }: LoadOptions): Subject['sink'] {
  return choose(SINK_TYPES, valueAt(value, ['sink', 'type']), [valueAt(value, ['sink', 'driver']), sinkPlugin]);
}

function choose<T extends string>(
  known: readonly T[],
  kind: unknown,
  external: readonly unknown[],
): T | 'external' | undefined {
  if (kind !== undefined) return known.find((name) => name === kind);
  return external.some((choice) => choice !== undefined) ? 'external' : undefined;
}

function apply(rules: readonly Rule[], subject: Subject): Finding[] {
  return rules.flatMap((rule) => [...rule(subject)]);
}

/** Without findings about a field, or a part of one, that an earlier finding has spoken of. */
function unrepeated(findings: readonly Finding[]): Finding[] {
  const spoken: Path[] = [];
  return findings.filter(({ path, meant }) => {
    if (spoken.some((earlier) => begins(path, earlier))) return false;
    spoken.push(path);
    if (meant !== undefined) spoken.push(meant);
    return true;
  });
}

function begins(path: Path, start: Path): boolean {
  return start.length <= path.length && start.every((step, index) => step === path[index]);
}

import { z } from 'zod';
import { closest } from './did-you-mean.ts';
import { type Path, renderPath, replaced, valueAt } from './path.ts';
import type { Finding } from './problem.ts';
import { type Draft, pipelineFile } from './schema/pipeline-file.ts';
import { shownKey } from './secrets.ts';
import type { Show } from './show.ts';

export interface SchemaCheck {
  /** The file without what the schema refused, so that the rules can look at all the rest. */
  readonly draft: Draft;
  readonly findings: readonly Finding[];
}

/**
 * Holds a file against the schema. A number or a truth value that came as text from the environment (`written`, by
 * rendered path) is converted first.
 */
export function checkSchema(
  value: unknown,
  { written, show }: { written: ReadonlyMap<string, string>; show: Show },
): SchemaCheck {
  let checked = value;
  for (const issue of issuesOf(value)) {
    const converted = written.has(renderPath(issue.path as Path))
      ? convert(issue, valueAt(value, issue.path as Path))
      : undefined;
    if (converted !== undefined) checked = replaced(checked, issue.path as Path, converted);
  }
  const issues = issuesOf(checked);
  const findings = issues.flatMap((issue) => explain(issue, checked, show));
  const draft = findings.reduce((rest, { path }) => replaced(rest, path, undefined), checked);
  return { draft: (draft ?? {}) as Draft, findings };
}

type Issue = z.core.$ZodIssue;

function issuesOf(value: unknown): readonly Issue[] {
  return pipelineFile.safeParse(value).error?.issues ?? [];
}

function convert(issue: Issue, text: unknown): unknown {
  if (issue.code !== 'invalid_type' || typeof text !== 'string') return undefined;
  switch (issue.expected) {
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined;
    case 'number':
    case 'int':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
    default:
      return undefined;
  }
}

function explain(issue: Issue, value: unknown, show: Show): Finding[] {
  const path = issue.path as Path;
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField(path, key));
  if (path.length > 0 && valueAt(value, path) === undefined) {
    return [{ path, what: `is missing, expected ${issue.message}`, remedy: 'add it' }];
  }
  // What stands in the place of a block may be anything, also a password.
  const isBlock =
    issue.code === 'invalid_type' &&
    (issue.expected === 'object' || issue.expected === 'array' || issue.expected === 'record');
  const came = isBlock && typeof valueAt(value, path) === 'string' ? 'a text' : show(path);
  const meant =
    issue.code === 'invalid_value' ? closest(String(valueAt(value, path)), issue.values.map(String)) : undefined;
  const remedy = meant === undefined ? 'correct the value' : `did you mean "${meant}"?`;
  return [{ path, what: `expected ${issue.message}, came ${came}`, remedy }];
}

function unknownField(parent: Path, key: string): Finding {
  const known = fieldsAt(parent);
  const meant = closest(key, known) ?? known.find((name) => name === CONFUSED[key]);
  return {
    path: [...parent, key],
    pathShown: [...parent, shownKey(key)],
    atKey: true,
    meant: meant === undefined ? undefined : [...parent, meant],
    what: 'unknown field',
    remedy: meant === undefined ? `remove it, or use one of ${known.join(', ')}` : `did you mean "${meant}"?`,
  };
}

// A source has a kind and a sink has a type.
const CONFUSED: Readonly<Record<string, string>> = { kind: 'type', type: 'kind' };

/** The names that the schema knows in the block at `path`. */
function fieldsAt(path: Path): string[] {
  let schema: unknown = pipelineFile;
  for (const step of path) {
    const inner = unwrapped(schema);
    if (inner instanceof z.ZodObject) schema = inner.shape[step];
    else if (inner instanceof z.ZodArray) schema = inner.element;
    else if (inner instanceof z.ZodRecord) schema = inner.valueType;
  }
  const block = unwrapped(schema);
  return block instanceof z.ZodObject ? Object.keys(block.shape) : [];
}

function unwrapped(schema: unknown): unknown {
  return schema instanceof z.ZodOptional ? unwrapped(schema.unwrap()) : schema;
}

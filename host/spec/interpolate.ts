// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the pipeline file has this syntax.
import { closest } from './did-you-mean.ts';
import { type Path, renderPath } from './path.ts';
import type { Finding } from './problem.ts';

export interface InterpolateOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a text file; relative paths are resolved by the caller. */
  readonly readFile: (path: string) => string;
}

export interface Interpolated {
  readonly value: unknown;
  /** What was written, by rendered path, for each field whose value came from outside the file. */
  readonly written: ReadonlyMap<string, string>;
  readonly findings: readonly Finding[];
}

/**
 * Replaces `${env:X}`, `${env:X:-default}` and `${file:/path}` in every string of `value`; `$${` is a literal `${`.
 * A default serves for a variable that is unset or empty. A file's last line break is dropped.
 */
export function interpolate(value: unknown, options: InterpolateOptions): Interpolated {
  const written = new Map<string, string>();
  const findings: Finding[] = [];
  return { value: walk(value, []), written, findings };

  function walk(part: unknown, path: Path): unknown {
    if (typeof part === 'string') return substitute(part, path);
    if (Array.isArray(part)) return part.map((item, index) => walk(item, [...path, index]));
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([key, field]) => [key, walk(field, [...path, key])]));
  }

  function substitute(text: string, path: Path): string {
    return text.replace(REFERENCE, (reference: string, inside: string | undefined) => {
      if (reference === '$${') return '${';
      written.set(renderPath(path), text);
      const outcome = resolve(inside, options);
      if (typeof outcome === 'string') return outcome;
      findings.push({ path, ...outcome });
      return reference;
    });
  }
}

// An unclosed `${` matches too, so that it is reported and not passed on as text.
const REFERENCE = /\$\$\{|\$\{(?:([^}]*)\})?/g;

type Failure = Pick<Finding, 'what' | 'remedy'>;

function resolve(inside: string | undefined, { env, readFile }: InterpolateOptions): string | Failure {
  if (inside === undefined)
    return { what: '"${" has no closing "}"', remedy: 'close it, or write $${ for the characters themselves' };
  const kind = inside.slice(0, Math.max(inside.indexOf(':'), 0));
  const rest = inside.slice(kind.length + 1);
  switch (kind) {
    case 'env':
      return resolveVariable(rest, env);
    case 'file':
      return resolveFile(rest, readFile);
    default: {
      const meant = closest(kind, ['env', 'file']);
      return {
        // What came may be a piece of a password.
        what: 'after "${" expected env:NAME, env:NAME:-default or file:/path, came something else',
        remedy: meant === undefined ? 'write $${ for the characters themselves' : `did you mean "${meant}"?`,
      };
    }
  }
}

function resolveVariable(rest: string, env: InterpolateOptions['env']): string | Failure {
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-([\s\S]*))?$/.exec(rest) ?? [];
  if (name === undefined) {
    return {
      what: 'expected the name of an environment variable after "env:"',
      remedy: 'write ${env:NAME} or ${env:NAME:-default}',
    };
  }
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
  if (value !== undefined) return value;
  return {
    what: `the environment variable ${name} is not set`,
    remedy: `set it, or give a default: \${env:${name}:-default}`,
  };
}

function resolveFile(path: string, readFile: InterpolateOptions['readFile']): string | Failure {
  if (path === '') return { what: 'expected a path after "file:"', remedy: 'write ${file:/path}' };
  try {
    return readFile(path).replace(/\r?\n$/, '');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    return {
      what: `the file ${path} cannot be read (${code})`,
      remedy: 'check that it exists and that this user may read it',
    };
  }
}

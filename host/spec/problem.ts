import { type Path, renderPath } from './path.ts';

/** One thing that is wrong in a pipeline file, with its place. `line` and `column` count from 1. */
export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The field, such as `tables[0].writeMode`; empty when the file as a whole is meant. */
  readonly path: string;
  readonly what: string;
  readonly remedy: string;
}

/** A problem before its place is known. Its text never holds a secret. */
export interface Finding {
  readonly path: Path;
  readonly what: string;
  readonly remedy: string;
  /** Instead of `path` in the text, where a part of that may be a secret. */
  readonly pathShown?: Path;
  /** Overrides the place of `path`, as an offset into the text. */
  readonly offset?: number;
  /** Points at the field's name instead of its value. */
  readonly atKey?: boolean;
  /** The field that was most likely meant by an unknown one: that it is missing is then no second problem. */
  readonly meant?: Path;
}

/** Everything that is wrong with a pipeline file, at once. The message has one line for each problem. */
export class SpecError extends Error {
  override readonly name = 'SpecError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(renderProblem).join('\n'));
    this.problems = problems;
  }
}

/** `file:line:column: field.path: what is wrong; remedy`, always one line. */
export function renderProblem({ file, line, column, path, what, remedy }: Problem): string {
  const field = path === '' ? '' : `${path}: `;
  return `${file}:${line}:${column}: ${field}${what}; ${remedy}`.replace(/\s*[\r\n]+\s*/g, ' ');
}

/** Gives findings their places, in the order of the file. */
export function placed(
  findings: readonly Finding[],
  { file, locate }: { file: string; locate: (finding: Finding) => { line: number; column: number } },
): Problem[] {
  return findings
    .map((finding) => {
      const { path, pathShown = path, what, remedy } = finding;
      return { file, ...locate(finding), path: renderPath(pathShown), what, remedy };
    })
    .sort((a, b) => a.line - b.line || a.column - b.column);
}

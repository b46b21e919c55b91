import { type ErrorCode, type Failure, UrutauError } from '@urutau/contract';
import { SpecError } from '../spec/problem.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

/** An error as a person wants it: what, where, remedy. Ends with a newline. `stack` adds where in the code it arose. */
export function describeError(error: unknown, { stack }: { stack: boolean }): string {
  const lines = linesOf(error);
  if (stack && error instanceof Error) lines.push(error.stack ?? '');
  for (let cause = error; stack && cause instanceof Error && cause.cause !== undefined; cause = cause.cause) {
    lines.push(`caused by ${cause.cause instanceof Error ? cause.cause.stack : String(cause.cause)}`);
  }
  return `${lines.join('\n')}\n`;
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof SpecError) return EXIT.wrong;
  return error instanceof UrutauError && WRONG.has(error.code) ? EXIT.wrong : EXIT.failed;
}

const WRONG: ReadonlySet<ErrorCode> = new Set(['config-invalid', 'precondition-failed', 'auth-failed']);

function linesOf(error: unknown): string[] {
  // One line for each problem, as compilers write them, so that editors find the places.
  if (error instanceof SpecError) return [error.message];
  if (!(error instanceof UrutauError)) {
    const message = error instanceof Error ? error.message : String(error);
    return [
      `error: ${message}`,
      '  remedy: this was not foreseen; run again with --log-level debug to see where it arose',
    ];
  }
  const failures = error.context.failures ?? [];
  if (failures.length < 2) return [`error: ${error.message}`, `  remedy: ${error.remedy}`];
  return [`error: ${failures.length} things are in the way:`, ...failureLines(failures)];
}

/** Two lines for each failure. */
export function failureLines(failures: readonly Failure[]): string[] {
  return failures.flatMap(({ problem, remedy }) => [`  - ${problem}`, `    remedy: ${remedy}`]);
}

import type { ExitCode } from './exit-code.ts';
import type { Shell } from './shell.ts';

/** What each command gets beside its options. */
export interface CommandContext {
  readonly shell: Shell;
  /** Sets the exit code of a command that ends without an error; 0 unless it is called. */
  exit(code: ExitCode): void;
}

import type { DriverPlaces } from '../driver-packages/find.ts';
import type { Usage } from '../supervisor/usage.ts';

/** What a command sees of the world around it. main.ts makes the real one. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where results go, and with a sink such as stdout the rows. */
  readonly out: Terminal;
  /** Where everything else goes: logs, progress, errors. */
  readonly err: Terminal;
  /** Whether somebody is there to answer a question. */
  readonly interactive: boolean;
  readonly places: DriverPlaces;
  /** Writes the question and reads one line. */
  ask(question: string): Promise<string>;
  /** Calls `listener` for each SIGINT and SIGTERM, instead of ending the process; the function returned takes it off. */
  onInterrupt(listener: () => void): () => void;
  /** Ends the process here and now. */
  exit(code: number): void;
  /** Of the host's own process so far. */
  usage(): Usage;
  /** Monotonic. */
  nowMs(): number;
  /** Since 1970. */
  wallMs(): number;
  /** In [0, 1). */
  random(): number;
  randomId(): string;
  readonly nodeVersion: string;
}

export interface Terminal {
  write(text: string): void;
  readonly isTerminal: boolean;
  /** Width in characters, where it is a terminal. */
  readonly columns: number;
}

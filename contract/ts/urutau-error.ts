import { ERRORS, type ErrorCode, type Retry } from './registry.ts';

/** Where a fault lies. `key` may go to status, log and event log; never to metrics. */
export interface ErrorContext {
  readonly table?: string;
  readonly column?: string;
  readonly stream?: number;
  readonly seq?: number;
  readonly row?: number;
  readonly key?: string;
  /** Further rows of the stream that are refused, as `[seq, row]`, with `row-refused` of a commit. */
  readonly more?: readonly (readonly [seq: number, row: number])[];
  /** The checkpoint that is stored, with `fenced`. */
  readonly stored?: string | null;
  /** Where a stream ended, base64, with `schema-changed`. */
  readonly offset?: string;
  /** All preconditions that failed, with `precondition-failed`. */
  readonly failures?: readonly Failure[];
}

/** One of several things that are wrong, with its own remedy. */
export interface Failure {
  readonly problem: string;
  readonly remedy: string;
  readonly table?: string;
  /** The code of a failure that concerns one table of many, such as `position-lost`. */
  readonly code?: ErrorCode;
}

export interface UrutauErrorOptions extends ErrorContext {
  readonly cause?: unknown;
  /** Overrides the remedy of the code where a better one is known. */
  readonly remedy?: string;
}

/** The only error that crosses a process boundary (ERR-1). Anything else is wrapped at the boundary, as `cause`. */
export class UrutauError extends Error {
  override readonly name = 'UrutauError';
  readonly code: ErrorCode;
  readonly remedy: string;
  readonly context: ErrorContext;

  constructor(code: ErrorCode, message: string, { cause, remedy, ...context }: UrutauErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.remedy = remedy ?? ERRORS[code].remedy;
    this.context = context;
  }

  get retry(): Retry {
    return ERRORS[this.code].retry;
  }

  /** The trailing metadata `urutau-error` (ERR-2), as JSON. */
  toWire(): string {
    return JSON.stringify({ code: this.code, retry: this.retry, remedy: this.remedy, ...this.context });
  }

  /** Reads `toWire` back; null when the text is not one of ours, so that the caller can fall back on the gRPC status. */
  static fromWire(json: string, message: string): UrutauError | null {
    try {
      const { code, remedy, retry: _retry, ...context } = JSON.parse(json);
      return code in ERRORS ? new UrutauError(code, message, { remedy, ...context }) : null;
    } catch {
      return null;
    }
  }
}

/** Keeps an UrutauError as it is and wraps anything else under `code`, with the original as the cause. */
export function asUrutauError(error: unknown, code: ErrorCode = 'internal', context: ErrorContext = {}): UrutauError {
  if (error instanceof UrutauError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new UrutauError(code, message, { cause: error, ...context });
}

/** Where the host writes what happens. Fields hold identifiers, counts, positions and durations; never row values or credentials. */
export interface Log {
  debug(msg: string, fields?: Record<string, unknown>): void;
  info(msg: string, fields?: Record<string, unknown>): void;
  warn(msg: string, fields?: Record<string, unknown>): void;
  error(msg: string, fields?: Record<string, unknown>): void;
  /** A log that adds `fields` to every line. */
  child(fields: Record<string, unknown>): Log;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** A driver's log. Identifiers, counts, positions and durations may be logged; cell values and config values may not. */
export type Log = Record<LogLevel, (msg: string, fields?: Record<string, unknown>) => void>;

/** One JSON object a line on stdout (LOG-1). The host reads and forwards them. */
export function createLog(write: (line: string) => void, now: () => Date): Log {
  const at =
    (level: LogLevel) =>
    (msg: string, fields: Record<string, unknown> = {}): void =>
      write(`${JSON.stringify({ ts: now().toISOString(), level, msg, ...fields })}\n`);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

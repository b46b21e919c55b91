import { isatty } from 'node:tty';
import { pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { Log } from './log.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogOptions {
  level: LogLevel;
  format: 'text' | 'json';
  /** A file descriptor. Standard error by default: standard output may belong to a sink. */
  destination?: number;
  /** Colours, and the time of day alone, for a person who watches. By default where the destination is a terminal. */
  colors?: boolean;
}

/**
 * A log of one line per message, written before the call returns, so that the last words of a process are never lost.
 * A destination that cannot be written (a closed pipe, a full disk) ends the log, never the process.
 */
export function createLog(options: LogOptions): Log {
  const { level, format, destination = 2, colors = isatty(destination) && !process.env['NO_COLOR'] } = options;
  const output = pino.destination({ fd: destination, sync: true });
  output.on('error', () => {}); // There is nowhere left to say it.
  const logger = pino(
    {
      level,
      base: null,
      messageKey: MESSAGE_KEY,
      timestamp: () => `,"${TIME_KEY}":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ [LEVEL_KEY]: label }) },
    },
    format === 'json' ? output : asText(output, colors),
  );
  return logWith(logger, {});
}

const LEVEL_KEY = 'level';
const TIME_KEY = 'ts';
const MESSAGE_KEY = 'msg';
const OWN_KEYS: readonly string[] = [LEVEL_KEY, TIME_KEY, MESSAGE_KEY];

function asText(output: { write(text: string): unknown }, colors: boolean): { write(line: string): void } {
  const pretty = prettyFactory({
    colorize: colors,
    levelKey: LEVEL_KEY,
    timestampKey: TIME_KEY,
    messageKey: MESSAGE_KEY,
    hideObject: true,
    ignore: 'pid,hostname,name,caller,stack', // These get places of their own otherwise; here they are fields.
    messageFormat: sentence,
    translateTime: false,
    customPrettifiers: { time: (time) => (colors ? String(time).slice(11, 23) : String(time)) },
  });
  return { write: (line) => void output.write(printed(line)) };

  /** What a driver nests a thousand deep is more than can be made pretty, and no reason to end. */
  function printed(line: string): string {
    try {
      return pretty(line);
    } catch {
      return `${harmless(line.trimEnd())}\n`;
    }
  }
}

/** `driver ready role=source pid=12`. Whatever a driver says can neither begin a line nor command the terminal. */
function sentence(line: Record<string, unknown>): string {
  const fields = Object.entries(line)
    .filter(([key]) => !OWN_KEYS.includes(key))
    .map(([key, value]) => `${key}=${spelled(value)}`);
  return [String(line[MESSAGE_KEY]), ...fields].map(harmless).join(' ');
}

function spelled(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

function harmless(text: string): string {
  return (
    text
      .replaceAll('\n', '\n    ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
      .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) =>
        character === '\t' ? ' ' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
  );
}

function logWith(logger: pino.Logger, bound: Record<string, unknown>): Log {
  const at =
    (level: LogLevel) =>
    (msg: string, fields?: Record<string, unknown>): void => {
      if (logger.isLevelEnabled(level)) logger[level](line(bound, fields), msg);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => logWith(logger, { ...bound, ...fields }),
  };
}

/** No key comes twice, and none takes the place of the line's own: drivers send a time of their own. */
function line(bound: Record<string, unknown>, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const all = Object.entries({ ...bound, ...fields }).filter(([key]) => !OWN_KEYS.includes(key));
  return Object.fromEntries(all.map(([key, value]) => [key, typeof value === 'bigint' ? value.toString() : value]));
}

import { readFileSync } from 'node:fs';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type ErrorCode, UrutauError } from '@urutau/sdk';
import pg from 'pg';
import connectionString from 'pg-connection-string';

/** How to reach a server: exactly one of the two. */
export interface ConnectionOptions {
  /** `postgresql://user:password@host:port/database?sslmode=…` */
  uri?: string;
  postgres?: ConnectionBlock;
}

export interface ConnectionBlock {
  /** A host name, an address, or the folder of a unix socket. */
  host: string;
  port?: number;
  database: string;
  username: string;
  password?: string;
  /** `application_name`, `connect_timeout` (seconds), and any server setting. */
  params?: Record<string, string>;
  ssl?: SslOptions;
}

/** `ca`, `cert` and `key` are PEM text, or the absolute path of a PEM file. */
export interface SslOptions {
  mode: SslMode;
  ca?: string;
  cert?: string;
  key?: string;
}

export type SslMode = (typeof SSL_MODES)[number];
export const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;

/**
 * The pg client's config, with the session settings under which the driver reads and writes text: UTF-8, ISO dates,
 * UTC, and floats in full. Throws `config-invalid`; the message never holds a part of the uri.
 */
export function pgConfig({ uri, postgres }: ConnectionOptions): pg.ClientConfig {
  if ((uri === undefined) === (postgres === undefined)) {
    throw new UrutauError('config-invalid', 'expected exactly one of uri and the postgres block', {
      remedy: 'Give either `uri` or `postgres` in the configuration.',
    });
  }
  const { params, ...address } = uri === undefined ? fromBlock(postgres!) : fromUri(uri);
  const { application_name: applicationName, connect_timeout: connectTimeout, options, ...settings } = params;
  return {
    ...address,
    application_name: applicationName ?? 'urutau',
    connectionTimeoutMillis: 1000 * Number(connectTimeout ?? 10),
    // The system's own delay is two hours, for which a peer that is gone without a word would look idle.
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    client_encoding: 'UTF8',
    options: [options, ...settingOptions({ ...settings, ...SESSION_SETTINGS })].filter(Boolean).join(' '),
  };
}

/** The `database` of a config, which the server takes from the user's name when it is left out. */
export function databaseOf({ database, user }: pg.ClientConfig): string {
  return database ?? user ?? 'postgres';
}

/** `"order"`: an SQL identifier that means exactly this name. */
export function quoteIdent(name: string): string {
  return pg.escapeIdentifier(name);
}

/** `public.orders` → `"public"."orders"`. The schema ends at the first dot. */
export function quoteName(fullName: string): string {
  const { schema, name } = splitName(fullName);
  return `${quoteIdent(schema)}.${quoteIdent(name)}`;
}

/** The same for a statement that a person reads: quoted only where it must be. */
export function readableName(fullName: string): string {
  const { schema, name } = splitName(fullName);
  return [schema, name].map((part) => (/^[a-z_][a-z0-9_]*$/.test(part) ? part : quoteIdent(part))).join('.');
}

/** Splits `schema.table` at its first dot; a name without one is in `public`. */
export function splitName(fullName: string): { schema: string; name: string } {
  const dot = fullName.indexOf('.');
  return dot < 0
    ? { schema: 'public', name: fullName }
    : { schema: fullName.slice(0, dot), name: fullName.slice(dot + 1) };
}

/**
 * Gives an error of the server or of the network its code and remedy, by SQLSTATE and never by words. An UrutauError
 * stays as it is. Messages of the server that may hold a cell's value are replaced by what the fields say.
 */
export function asPgError(error: unknown, side: 'source' | 'sink'): UrutauError {
  if (error instanceof UrutauError) return error;
  const { sqlState, ...fields } = serverFields(error);
  if (sqlState !== null) {
    const { code, remedy } = ofSqlState(sqlState, side);
    const text = HOLDS_VALUES.test(sqlState) ? describeFields(fields) : (error as Error).message;
    return new UrutauError(code, `postgres ${side}: ${text} (SQLSTATE ${sqlState})`, {
      cause: error,
      remedy,
      column: fields.column,
    });
  }
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) {
    return new UrutauError('internal', error.message, { cause: error });
  }
  return new UrutauError(unavailable(side), `postgres ${side}: ${networkText(error)}`, { cause: error });
}

/** True when the server let nobody in: said beside a connection that lives, it means that the server shuts down. */
export function isServerClosing(error: unknown): boolean {
  const { cause } = error as Error;
  return serverFields(error).sqlState === '57P03' || (cause !== undefined && isServerClosing(cause));
}

const SESSION_SETTINGS: Record<string, string> = {
  DateStyle: 'ISO, YMD',
  IntervalStyle: 'iso_8601',
  TimeZone: 'UTC',
  extra_float_digits: '3',
  bytea_output: 'hex',
  // Money is an integer whose text each locale writes, and reads, in its own way.
  lc_monetary: 'C',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  // Rows that a policy hides are an error and not missing.
  row_security: 'off',
};

type Address = Pick<pg.ClientConfig, 'host' | 'port' | 'database' | 'user' | 'password' | 'ssl'> & {
  params: Record<string, string>;
};

function fromBlock({ host, port, database, username, password, params = {}, ssl }: ConnectionBlock): Address {
  return { host, port: port ?? 5432, database, user: username, password, ssl: sslConfig(ssl), params };
}

function fromUri(uri: string): Address {
  // A password with a `/`, `?` or `#` that is not encoded ends the address early: a piece of it would be the host, and
  // stand in the message that this host cannot be found.
  const [, address = '', rest = ''] = /^\w+:\/\/([^/?#]*)(.*)$/s.exec(uri) ?? [];
  if (/^[^?]*[@#]/.test(rest) || (rest.includes('@') && !address.includes('@'))) throw malformedUri();
  const question = uri.indexOf('?');
  const query = new URLSearchParams(question < 0 ? '' : uri.slice(question + 1));
  const take = (name: string): string | undefined => {
    const value = query.get(name) ?? undefined;
    query.delete(name);
    return value;
  };
  // The library gives sslmode other meanings than libpq does, so the four parameters never reach it.
  const ssl = sslOfUri({ mode: take('sslmode'), ca: take('sslrootcert'), cert: take('sslcert'), key: take('sslkey') });
  const { host, port, user, password, database, ...params } = parseUri(
    `${question < 0 ? uri : uri.slice(0, question)}?${query}`,
  );
  return {
    host: host || 'localhost',
    port: port ? Number(port) : 5432,
    database: database || user || undefined,
    user: user || undefined,
    password: password || undefined,
    ssl,
    params: params as Record<string, string>,
  };
}

function parseUri(uri: string): Record<string, string | undefined> {
  if (!/^postgres(ql)?:\/\//.test(uri)) throw malformedUri();
  try {
    return connectionString.parse(uri) as unknown as Record<string, string | undefined>;
  } catch {
    // The library's error may quote the uri, so it is not even kept as the cause.
    throw malformedUri();
  }
}

function malformedUri(): UrutauError {
  return new UrutauError('config-invalid', 'uri: expected postgresql://user:password@host:port/database', {
    remedy: 'Write special characters of user and password percent-encoded (`@` is %40, `/` is %2F, `?` is %3F).',
  });
}

function sslOfUri({
  mode,
  ...files
}: {
  mode?: string;
  ca?: string;
  cert?: string;
  key?: string;
}): pg.ClientConfig['ssl'] {
  if (mode === undefined) return sslConfig(undefined);
  if (!(SSL_MODES as readonly string[]).includes(mode)) {
    throw new UrutauError('config-invalid', `uri: expected sslmode ${SSL_MODES.join(', ')}; came another`, {
      remedy: 'Say `sslmode=require` or stronger, or `sslmode=disable`: there is no silent fall-back to plain text.',
    });
  }
  return sslConfig({ mode: mode as SslMode, ...files });
}

function sslConfig(ssl: SslOptions | undefined): pg.ClientConfig['ssl'] {
  const mode = ssl?.mode ?? 'disable';
  const tls: TlsOptions = { ca: pem('ca', ssl?.ca), cert: pem('cert', ssl?.cert), key: pem('key', ssl?.key) };
  switch (mode) {
    case 'disable':
      return false;
    case 'require':
      return { ...tls, rejectUnauthorized: false };
    case 'verify-ca':
      return { ...tls, rejectUnauthorized: true, checkServerIdentity: () => undefined };
    case 'verify-full':
      return { ...tls, rejectUnauthorized: true };
  }
}

function pem(field: string, value: string | undefined): string | undefined {
  if (value === undefined || value.includes('-----BEGIN')) return value;
  try {
    return readFileSync(value, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UrutauError(
      'config-invalid',
      `ssl.${field}: expected PEM text or a readable PEM file; reading failed with ${code}`,
      {
        remedy: 'Give the text of the certificate, or an absolute path that the driver may read.',
      },
    );
  }
}

/** `-c name=value`, with blanks and backslashes escaped as the server's startup packet wants them. */
function settingOptions(settings: Record<string, string>): string[] {
  return Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replace(/[\\\s]/g, '\\$&')}`);
}

interface ServerFields {
  sqlState: string | null;
  schema?: string;
  table?: string;
  column?: string;
  constraint?: string;
  dataType?: string;
}

function serverFields(error: unknown): ServerFields {
  if (!(error instanceof pg.DatabaseError) || !/^[0-9A-Z]{5}$/.test(error.code ?? '')) return { sqlState: null };
  const { code, schema, table, column, constraint, dataType } = error;
  return { sqlState: code!, schema, table, column, constraint, dataType };
}

/** Data exceptions and broken constraints quote the value that they refuse. */
const HOLDS_VALUES = /^(22|23)/;

function describeFields(fields: Omit<ServerFields, 'sqlState'>): string {
  const known = Object.entries(fields).flatMap(([name, value]) => (value ? [`${name} ${value}`] : []));
  return `the server refused a value${known.length > 0 ? `: ${known.join(', ')}` : ''}`;
}

function ofSqlState(sqlState: string, side: 'source' | 'sink'): { code: ErrorCode; remedy?: string } {
  switch (sqlState) {
    case '3D000':
      return {
        code: 'precondition-failed',
        remedy: 'Create the database, or name an existing one in the configuration.',
      };
    case '42501':
      return { code: 'precondition-failed', remedy: 'Grant the user of the configuration what the message names.' };
    case '42P01':
      return { code: 'table-not-found' };
    case '42704':
      return {
        code: 'precondition-failed',
        remedy: 'An object that the message names is missing; start again to create it.',
      };
    case '55006':
      return {
        code: unavailable(side),
        remedy: 'Another process uses the object; stop it, or wait until it has ended.',
      };
    case '55P03':
      return { code: unavailable(side), remedy: 'A lock was not free in time; the host tries again by itself.' };
  }
  switch (sqlState.slice(0, 2)) {
    case '28':
      return { code: 'auth-failed', remedy: "Check user, password and the server's pg_hba.conf." };
    case '22':
    case '23':
      return { code: side === 'sink' ? 'row-refused' : 'internal' };
    case '42':
      return { code: side === 'sink' ? 'schema-unsupported' : 'internal' };
    case '55':
      return { code: 'precondition-failed', remedy: 'Bring the server into the state that the message asks for.' };
    case '08': // connection
    case '25': // transaction ended by a timeout or read-only
    case '40': // rollback: deadlock, serialization
    case '53': // resources
    case '57': // shutdown
    case '58': // the server's own files
      return { code: unavailable(side) };
    default:
      return { code: 'internal' };
  }
}

function unavailable(side: 'source' | 'sink'): ErrorCode {
  return side === 'source' ? 'source-unavailable' : 'sink-unavailable';
}

/** A failed connect over several addresses has an empty message and a code. */
function networkText(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  if (code === undefined) return message || 'the connection failed';
  return message ? `${message} (${code})` : `the connection failed (${code})`;
}

import type pg from 'pg';
import { z } from 'zod';
import { pgConfig, SSL_MODES } from '../connection.ts';

/** The sink's part of the pipeline file. config.schema.json says the same for the host. */
export const sinkConfig = z.strictObject({
  uri: z.string().regex(/^postgres(ql)?:\/\//, 'expected postgresql://user:password@host:port/database'),
  /** Schema of targets that are named without one. */
  namespace: z.string().min(1).default('public'),
  tablePrefix: z.string().default(''),
  tls: z
    .strictObject({
      mode: z.enum(SSL_MODES),
      ca: z.string().optional(),
      cert: z.string().optional(),
      key: z.string().optional(),
    })
    .optional(),
});
export type SinkConfig = z.infer<typeof sinkConfig>;

export interface TargetName {
  readonly schema: string;
  readonly table: string;
  /** `schema.table`: how checkpoints and messages name the target. */
  readonly full: string;
}

/** `orders` → `<namespace>.<prefix>orders`; a name with a dot brings its own schema, which ends at the first dot. */
export function targetName(name: string, { namespace, tablePrefix }: Naming): TargetName {
  const dot = name.indexOf('.');
  const schema = dot < 0 ? namespace : name.slice(0, dot);
  const table = tablePrefix + name.slice(dot + 1);
  return { schema, table, full: `${schema}.${table}` };
}

export type Naming = Pick<SinkConfig, 'namespace' | 'tablePrefix'>;

/**
 * Merges need memory to order a commit's keys, and the staged rows should stay in it. A commit that is answered must be
 * durable: the source lets go of its log then.
 */
const SESSION_OPTIONS = '-c work_mem=32MB -c temp_buffers=32MB -c synchronous_commit=on';

export function clientConfig({ uri, tls }: SinkConfig): pg.ClientConfig {
  const config = pgConfig({ uri: tls === undefined ? uri : withTls(uri, tls) });
  return { ...config, options: `${config.options ?? ''} ${SESSION_OPTIONS}` };
}

function withTls(uri: string, { mode, ca, cert, key }: NonNullable<SinkConfig['tls']>): string {
  const query = new URLSearchParams({ sslmode: mode });
  for (const [name, value] of Object.entries({ sslrootcert: ca, sslcert: cert, sslkey: key })) {
    if (value !== undefined) query.set(name, value);
  }
  return `${uri}${uri.includes('?') ? '&' : '?'}${query}`;
}
